"""The machine's own Debian or Ubuntu mirror, read by an apt that touches nothing of the system; and running commands.

    apt's sources ── find_mirror() ──► Mirror ── own_apt() ──► the beginning of an apt-get command
    a command ── call() ──► what it printed, or a ToolError with the line in which it says why

Used by making.py for packages and sources, and by compat/_fetch.py for the sources that have upstream's tests.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_COMPONENTS = {"debian": "main", "ubuntu": "main universe"}

SOURCES = {"debian": "testing", "ubuntu": "devel"}
"""The suite of a distribution that has the newest sources."""

FETCH_TIMEOUT = 300.0
"""Seconds that one step with the network may take."""


class ToolError(Exception):
    """Something that is needed failed or is not there; the message is one line."""


@dataclass(frozen=True)
class Mirror:
    """A package mirror: its address and the distribution that it carries ("debian" or "ubuntu")."""

    address: str
    family: str


def mirror_in(targets: str) -> Mirror | None:
    """Find the distribution's main mirror among the addresses that apt uses.

    Args:
        targets: one address per line; archives such as the security one are passed over.

    Returns:
        The first Debian mirror, or else the first Ubuntu mirror; None if there is neither.
    """
    found: dict[str, str] = {}
    for address in targets.split():
        # ubuntu-ports has the other architectures; NAME.list is a list of mirrors; a snapshot ends with its date
        if match := re.search(r"/(debian|ubuntu)(?:-ports)?(?:\.list|/\d{8}T\d{6}Z)?/?$", address):
            found.setdefault(match[1], address)
    for family in ("debian", "ubuntu"):
        if family in found:
            return Mirror(found[family], family)
    return None


def find_mirror(given: str | None = None) -> Mirror:
    """Give the mirror to use.

    Args:
        given: an address; None for the one that apt uses on this machine.

    Returns:
        The mirror.

    Raises:
        ToolError: there is no apt, or no mirror that is known.
    """
    for tool in ("apt-get", "dpkg", "dpkg-deb"):
        if not shutil.which(tool):
            raise ToolError(f"there is no {tool} here to fetch it with")
    if given:
        # an address that tells nothing is taken for what it is said to be: a Debian mirror
        return mirror_in(given) or Mirror(given, "debian")
    found = mirror_in(call(["apt-get", "indextargets", "--format", "$(REPO_URI)"], "reading apt's sources"))
    if found is None:
        raise ToolError("apt's sources here name no Debian or Ubuntu mirror (name one with FASTPICKLE_MIRROR)")
    return found


def own_apt(folder: Path, mirror: Mirror, suite: str, kind: str = "deb") -> list[str]:
    """Write an apt configuration that touches nothing outside a folder.

    apt runs with lists, status and sources of its own, so it needs no rights and leaves the system's as they are.  Only
    the mirror's address, its keys and the machine's proxy settings are taken from the machine.  Signatures are checked
    as usual; only the expiry date of the list is not, because mirrors that are frozen at a date have an old one.

    Args:
        folder: where; it must not exist yet.
        mirror: the mirror.
        suite: the suite.
        kind: "deb" for packages, "deb-src" for their sources.

    Returns:
        The beginning of an apt-get command that uses it.
    """
    for name in ("lists/partial", "cache/archives/partial", "parts"):
        (folder / name).mkdir(parents=True)
    (folder / "status").touch()
    choices = [f"arch={call(['dpkg', '--print-architecture'], 'asking dpkg').strip()}"]
    # where the keyring package no longer fills trusted.gpg.d, its keyring is here
    keyrings = [Path(f"/usr/share/keyrings/{mirror.family}-archive-keyring.{ending}") for ending in ("pgp", "gpg")]
    choices += [f"signed-by={keyring}" for keyring in keyrings if keyring.exists()][:1]
    line = f"{kind} [{' '.join(choices)}] {mirror.address} {suite} {_COMPONENTS[mirror.family]}\n"
    (folder / "sources.list").write_text(line, encoding="utf-8")
    settings = {
        "Dir::Etc::sourcelist": str(folder / "sources.list"),
        "Dir::Etc::sourceparts": str(folder / "parts"),
        "Dir::Etc::preferences": str(folder / "preferences"),
        "Dir::Etc::preferencesparts": str(folder / "parts"),
        "Dir::Etc::trustedparts": "/etc/apt/trusted.gpg.d",
        "Dir::State": str(folder),
        "Dir::State::lists": str(folder / "lists"),
        "Dir::State::status": str(folder / "status"),
        "Dir::Cache": str(folder / "cache"),
        "Dir::Log": str(folder),
        "Acquire::Check-Valid-Until": "false",
        "Acquire::Languages": "none",
        "Acquire::Retries": "2",
        "APT::Default-Release": "",
        "APT::Get::AllowUnauthenticated": "false",
        "APT::Install-Recommends": "false",
        "APT::Update::Error-Mode": "any",
        "APT::Sandbox::User": "root",  # no change of user: the other user could not write into the folder
    }
    hooks = ("APT::Update::Pre-Invoke", "APT::Update::Post-Invoke", "APT::Update::Post-Invoke-Success")
    lines = [f'{key} "{value}";' for key, value in settings.items()] + [f"#clear {hook};" for hook in hooks]
    (folder / "apt.conf").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return ["apt-get", "--quiet", "--assume-yes", "--config-file", str(folder / "apt.conf")]


def call(
    command: Sequence[str],
    purpose: str,
    *,
    timeout: float = FETCH_TIMEOUT,
    settings: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> str:
    """Run a command and give what it printed on standard output.

    Args:
        command: the command.
        purpose: what it is for, for the message.
        timeout: seconds after which it and its children are killed.
        settings: what to add to the environment.
        cwd: the folder to run it in.

    Returns:
        Its standard output.

    Raises:
        ToolError: it failed or took too long; the message has the line in which it says why.
    """
    # files, not pipes: a grandchild that keeps a pipe open would be waited for
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        try:
            process = subprocess.Popen(
                command,
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                env={**os.environ, **(settings or {})},
                start_new_session=True,
            )
        except OSError as error:
            raise ToolError(f"{purpose} failed: {command[0]}: {error.strerror}") from None
        try:
            status = process.wait(timeout)
        except BaseException as error:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if isinstance(error, subprocess.TimeoutExpired):
                raise ToolError(f"{purpose} took more than {timeout:.0f} seconds") from None
            raise
        texts = []
        for stream in (output, errors):
            stream.seek(0)
            texts.append(stream.read().decode(errors="replace"))
    if status:
        raise ToolError(f"{purpose} failed: {telling_line(chr(10).join(texts))}")
    return texts[0]


def telling_line(output: str) -> str:
    """Give the line in which a failed command says why: the first that begins as an error, or the last.

    uv gives the reasons of an error below it; the last one, which is the first that happened, is added.
    """
    lines = [line.strip() for line in output.strip().splitlines() if line.strip()] or ["it printed nothing"]
    named = [line for line in lines if re.match(r"(E|error|ERROR)\s*: ", line)]
    causes = [line.lower() for line in lines if re.match(r"cause: |Caused by: ", line)]
    return (named[0] if named else lines[-1]) + (f" ({causes[-1]})" if named and causes else "")

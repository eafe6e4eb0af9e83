"""What the tests of both executors share: tasks, objects that misbehave, and a look at what is left over."""

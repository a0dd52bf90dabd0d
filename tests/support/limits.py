"""How long a test waits: no test fails because the machine is busy."""

HANGS = 1800.0  # seconds after which something has surely hung, and has not only been slow

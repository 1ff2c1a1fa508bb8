"""What holds for every test."""

import signal

# A run in the background of a script is started with interrupts ignored, and so would be every program that a test starts and interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

"""Random tests may take their time on a busy machine, and print how to repeat them."""

from hypothesis import settings

settings.register_profile("calm", deadline=None, print_blob=True)
settings.load_profile("calm")

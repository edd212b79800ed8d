"""What holds in every test: the same examples at every run, and errors that speak in words."""

import os
import sys

import pytest
from hypothesis import HealthCheck, settings

from sfumato.errors import SfumatoError

# Deterministic, so that a red run is red again; HYPOTHESIS_PROFILE=search looks further, with new examples.
settings.register_profile("deterministic", derandomize=True, max_examples=60, deadline=None, print_blob=True)
settings.register_profile(
    "search", max_examples=2_000, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
# Workers of Spark run the Python of the tests, and not the first one that is found.
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "deterministic"))


def pytest_collection_modifyitems(items):
    """Tests that start a Java process or need an environment of their own: `make test` leaves them out."""
    for item in items:
        name = item.path.name
        if name.startswith("test_flower"):
            item.add_marker(pytest.mark.flower)
        if name.startswith("test_oracle"):
            item.add_marker(pytest.mark.oracles)
        path, _, asked = item.nodeid.lower().partition("::")
        named = ("spark" in asked or "[connect" in asked) and not path.endswith("test_repository.py")
        if named or "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)


@pytest.fixture(autouse=True, scope="session")
def anchors_stay_in_the_tests(tmp_path_factory):
    """Heads of ledgers are anchored in a folder of the tests, not in that of whoever runs them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(autouse=True, scope="session")
def every_error_has_a_message_in_words():
    """No test raises a deliberate error, whether it looks at the message or not, without words in it."""
    plain = SfumatoError.__init__

    def checked(error, *arguments):
        plain(error, *arguments)
        # An error is made anew without a message when it is unpickled, and then filled.
        for message in arguments:
            assert isinstance(message, str)
            first, *rest = message.split()
            assert len(rest) >= 2
            assert not first.isupper(), "a message is a sentence, not a shout"
            assert "XX" not in message

    SfumatoError.__init__ = checked
    yield
    SfumatoError.__init__ = plain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nessie_cli.errors import InvalidInput
from nessie_cli.wire.bodies import MOST_POLICIES
from nessie_cli.wire.repository_config import decode_repository_config, duration_nanos


def config(**attributes):
    return decode_repository_config({"config": {"type": "GARBAGE_COLLECTOR", **attributes}})


@pytest.mark.parametrize(
    "policy", ["NONE", "none", "10", "P30D", "PT36H", "2021-01-01T00:00:00Z", "PT0.5S"]
)
def test_a_policy_is_stored_unchanged(policy):
    assert config(defaultCutoffPolicy=policy) == (
        "GARBAGE_COLLECTOR",
        {"type": "GARBAGE_COLLECTOR", "defaultCutoffPolicy": policy},
    )


@pytest.mark.parametrize(
    "policy", ["", "0", "-1", "nonsense", "P", "PT", "P1Y", "2021-01-01", "1.5"]
)
def test_an_invalid_policy_is_refused(policy):
    with pytest.raises(InvalidInput, match="defaultCutoffPolicy"):
        config(defaultCutoffPolicy=policy)
    with pytest.raises(InvalidInput, match=r"perRefCutoffPolicies\[0\].policy"):
        config(perRefCutoffPolicies=[{"referenceNamePattern": "main", "policy": policy}])


@pytest.mark.parametrize(
    ("given_", "kept"),
    [
        ("PT1S", "PT1S"),
        ("P1DT2H", "PT26H"),
        ("PT90M", "PT1H30M"),
        ("PT0S", "PT0S"),
        ("PT1.500S", "PT1.5S"),
    ],
)
def test_a_grace_period_is_written_in_hours_minutes_and_seconds(given_, kept):
    assert config(newFilesGracePeriod=given_)[1]["newFilesGracePeriod"] == kept


@given(st.integers(0, 10**9), st.integers(0, 59), st.integers(0, 59), st.integers(0, 10**9 - 1))
def test_a_period_has_the_same_value_after_writing(hours, minutes, seconds, nanos):
    text = f"PT{hours}H{minutes}M{seconds}.{nanos:09d}S"
    assert duration_nanos(
        config(newFilesGracePeriod=text)[1]["newFilesGracePeriod"]
    ) == duration_nanos(text)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"config": None},
        {"config": {}},
        {"config": {"type": "FOO"}},
        {"config": {"type": {}}},
        [],
        "x",
    ],
)
def test_an_invalid_configuration_is_refused(body):
    with pytest.raises(InvalidInput):
        decode_repository_config(body)


@pytest.mark.parametrize("pattern", ["(", "*", "a{2,1}", "(?<name>x)"])
def test_a_pattern_is_stored_unchecked(pattern):
    policies = [{"referenceNamePattern": pattern, "policy": "5"}]
    assert config(perRefCutoffPolicies=policies)[1]["perRefCutoffPolicies"] == policies


def test_the_number_of_policies_is_bounded():
    policy = {"referenceNamePattern": "main", "policy": "10"}
    _, stored = config(perRefCutoffPolicies=[policy] * MOST_POLICIES)
    assert len(stored["perRefCutoffPolicies"]) == MOST_POLICIES
    with pytest.raises(InvalidInput, match=r"config\.perRefCutoffPolicies: has more than 10,000"):
        config(perRefCutoffPolicies=[policy] * (MOST_POLICIES + 1))

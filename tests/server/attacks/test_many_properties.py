"""Tools of a hundred thousand properties: each place that looks at them takes time in proportion, and a grammar of them is refused."""

import pytest
from attack_requests import many_properties
from raw_connection import seconds_of


# Comparing each property with all before it takes 1,024 times as long for 32 times as many. Other work on the machine may
# slow one of the requests several times over, and not both of its two turns.
@pytest.mark.parametrize("choice, statuses", [("auto", (200, 400)), ("none", (200,)), ("required", (400,))])
def test_they_take_time_in_proportion(server, choice, statuses):
    def least(count):
        body = {**many_properties(count), "tool_choice": choice}
        return min(seconds_of(server.port, "/v1/chat/completions", body, statuses) for _ in range(2))

    assert least(160_000) < 200 * least(5_000)

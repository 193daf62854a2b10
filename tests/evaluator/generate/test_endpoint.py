"""The real client against a server that answers by a script."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from evaluator.generate.asking import Asker, EndpointDown, spent_in
from evaluator.generate.budget import Budget, Price, Purse
from evaluator.generate.endpoint import MAX_BODY_BYTES, OpenAIEndpoint
from evaluator.generate.exchange import (
    Ask,
    Failed,
    Message,
    Misconfigured,
    Rejected,
    Reply,
    Sampling,
    ToolCall,
    Unanswered,
    Usage,
)
from evaluator.generate.journal import Event, Journal
from evaluator.generate.tools import TOOLS
from tests.evaluator.generate.server import Answer, Script, failing, in_pieces, said, serving

ASK = Ask(
    model="m",
    messages=(Message(role="system", text="s"), Message(role="user", text="u")),
    sampling=Sampling(max_output_tokens=1000, temperature=0.5, seed=7),
)
PRICE = Price(input=2.0, cached=1.0, output=10.0, date="2026-11-25")


def _streamed(answer: Answer) -> Reply:
    with serving([answer]) as server:
        endpoint = OpenAIEndpoint(base_url=server.url, api_key="k", is_streamed=True)
        got = endpoint.complete(ASK, 5.0)
    assert server.asked[0]["stream"]
    assert server.asked[0]["stream_options"] == {"include_usage": True}
    return got


def _ask(script: Script | list[Answer], ask: Ask = ASK, timeout_s: float = 5.0) -> Reply:
    with serving(script) as server:
        return OpenAIEndpoint(base_url=server.url, api_key="k").complete(ask, timeout_s)


def test_an_answer_is_read_with_its_usage() -> None:
    got = _ask([said("hello", usage=(100, 50))])
    assert (got.text, got.finish, got.model) == ("hello", "stop", "scripted-1")
    assert got.usage == Usage(input=100, cached=50, output=50)


@pytest.mark.parametrize(
    "answer",
    [
        said("hello, world", usage=(100, 50)),
        said("", calls=(("write", '{"source": "a long one"}'), ("judge", "{}"))),
        said("no usage", usage=None, finish="length"),
    ],
)
def test_what_comes_in_pieces_is_what_comes_whole(answer: Answer) -> None:
    whole, pieces, unasked = _ask([answer]), _streamed(in_pieces(answer)), _streamed(answer)
    assert replace(pieces, wall_s=0.0) == replace(whole, wall_s=0.0)
    assert replace(unasked, wall_s=0.0) == replace(whole, wall_s=0.0)  # it does not stream


@pytest.mark.parametrize(
    "answer",
    [
        replace(in_pieces(said("hello, world")), is_cut=True),
        replace(in_pieces(said("hello, world")), raw=b'data: {"choices": [{"delta": {}}]}\n\n'),
        replace(in_pieces(said("x")), raw=b'data: {"error": {"message": "overloaded"}}\n\n'),
        replace(in_pieces(said("x")), raw=b"data: {\n\n"),
        replace(in_pieces(said("x")), raw=b'data: [1]\n\ndata: "x"\n\n'),
        replace(in_pieces(said("x")), raw=b'data: {"choices": [{"delta": {"content": 5}}]}\n\n'),
    ],
)
def test_what_ends_in_the_middle_is_asked_again(answer: Answer) -> None:
    with pytest.raises(Unanswered) as fault:
        _streamed(answer)
    assert fault.value.may_cost


def test_a_stream_ends_where_no_kernel_is_as_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evaluator.generate.endpoint.MAX_BODY_BYTES", 1000)
    with pytest.raises(Failed, match="more than 1000 bytes"):
        _streamed(in_pieces(said("x" * 1001)))


def test_the_request_says_all_that_was_chosen_and_no_more() -> None:
    with serving([said("a")]) as server:
        OpenAIEndpoint(base_url=server.url, api_key="k").complete(ASK, 5.0)
    (body,) = server.asked
    assert body["messages"] == [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "u"},
    ]
    assert set(body) == {"model", "messages", "max_tokens", "temperature", "seed"}
    assert server.keys == ["Bearer k"]


def test_calls_of_tools_go_out_and_come_back() -> None:
    earlier = (
        Message(
            role="assistant", text="", calls=(ToolCall(id="c9", name="judge", arguments="{}"),)
        ),
        Message(role="tool", text="verdict: ok", call_id="c9"),
    )
    ask = replace(ASK, messages=ASK.messages + earlier, tools=TOOLS)
    with serving([said(None, calls=(("write", '{"source": "x"}'),))]) as server:
        got = OpenAIEndpoint(base_url=server.url, api_key="k").complete(ask, 5.0)
    assert got.calls == (ToolCall(id="c0", name="write", arguments='{"source": "x"}'),)
    body = server.asked[0]
    assert [tool["function"]["name"] for tool in body["tools"]] == [tool.name for tool in TOOLS]
    assert body["messages"][2]["tool_calls"][0]["function"]["name"] == "judge"
    assert body["messages"][3]["tool_call_id"] == "c9"


@pytest.mark.parametrize(
    ("answer", "may_cost"),
    [
        (failing(429), False),
        (failing(500), False),
        (failing(502), True),
        (Answer(raw=b'{"choices": ['), True),
        (Answer(document={"choices": []}), True),
        (Answer(raw=b"[" * 100_000), True),
        (replace(said("cut" * 1000), is_cut=True), True),
    ],
)
def test_what_may_be_tried_again_says_whether_it_may_have_cost(
    answer: Answer, may_cost: bool
) -> None:
    with pytest.raises(Unanswered) as caught:
        _ask([answer])
    assert caught.value.may_cost is may_cost


def test_a_server_that_is_not_there_or_too_slow_may_be_tried_again() -> None:
    with pytest.raises(Unanswered):
        OpenAIEndpoint(base_url="http://127.0.0.1:9/v1", api_key="k").complete(ASK, 1.0)
    began = time.monotonic()
    with pytest.raises(Unanswered):
        _ask([replace(said("late"), delay_s=1.0)], timeout_s=0.2)
    assert time.monotonic() - began < 3.0


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (failing(400, "context_length_exceeded"), "context"),
        (failing(400, "content_policy_violation"), "refused"),
        (Answer(raw=b" " * (100 << 20)), "too_long"),
    ],
)
def test_what_no_repetition_mends_is_an_outcome(answer: Answer, why: str) -> None:
    with pytest.raises(Failed) as caught:
        _ask([answer], timeout_s=30.0)
    assert caught.value.why == why
    assert MAX_BODY_BYTES < 100 << 20


def test_one_ask_that_is_rejected_says_nothing_of_others() -> None:
    with pytest.raises(Rejected, match="400"):
        _ask([failing(400, "unsupported_parameter")])


@pytest.mark.parametrize("arguments", ['{"source": ', "[1]", "[" * 100_000, ""])
def test_arguments_that_are_no_object_are_not_sent_back(arguments: str) -> None:
    call = ToolCall(id="c1", name="write", arguments=arguments)
    answered = (
        Message(role="assistant", text="", calls=(call,)),
        Message(role="tool", text="error: the arguments are not JSON", call_id="c1"),
    )
    with serving([said("a")]) as server:
        ask = replace(ASK, messages=ASK.messages + answered)
        OpenAIEndpoint(base_url=server.url, api_key="k").complete(ask, 5.0)
    assert server.asked[0]["messages"][2]["tool_calls"][0]["function"]["arguments"] == "{}"


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_wrong_key_model_or_address_ends_the_run(status: int) -> None:
    with pytest.raises(Misconfigured, match=str(status)):
        _ask([failing(status)])


@pytest.mark.parametrize("told", [None, (-1, 5), (10, "x")])
def test_usage_that_is_missing_or_makes_no_sense_is_none(told: tuple[int, int] | None) -> None:
    answer = said("a", usage=None)
    if told is not None:
        usage = {"prompt_tokens": told[0], "completion_tokens": told[1]}
        answer = replace(answer, document=answer.document | {"usage": usage})
    assert _ask([answer]).usage is None


def test_texts_are_made_fit_for_utf8() -> None:
    answer = said("x")
    raw = b'{"choices":[{"finish_reason":null,"message":{"content":"a\\ud800b"}}]}'
    got = _ask([replace(answer, raw=raw)])
    assert got.text == "a?b"
    assert got.finish == "unknown"


def _tried(answers: list[Answer], tries: int = 6) -> tuple[list[Event], Purse, list[float]]:
    """Events, purse and waits of one ask; EndpointDown is an event more."""
    waits: list[float] = []
    events: list[Event] = []

    def write(event: Event) -> Event:
        events.append(event)
        return event

    def wait(seconds: float) -> None:
        waits.append(seconds)

    purse, journal = Purse(Budget(usd=1.0), PRICE), Journal([], write)
    with serving(answers) as server:
        endpoint = OpenAIEndpoint(base_url=server.url, api_key="k")
        asker = Asker(endpoint=endpoint, purse=purse, tries=tries, timeout_s=5.0, wait=wait)
        try:
            journal.effect(ASK.digest, lambda: asker.event(ASK, journal))
        except EndpointDown:
            events.append({"kind": "down"})
    return events, purse, waits


def test_it_is_asked_again_until_it_answers_and_waits_as_it_is_told() -> None:
    events, purse, waits = _tried([failing(429, Retry_After="0.2"), said("a", usage=(100, 50))])
    assert [event["kind"] for event in events] == ["asked", "unanswered", "asked", "replied"]
    assert waits == [0.2]
    assert purse.spent.tokens == 150
    assert purse.spent.usd == pytest.approx((50 * 2.0 + 50 * 1.0 + 50 * 10.0) / 1e6)
    assert spent_in(events) == purse.spent


def test_what_may_have_cost_counts_as_the_most_it_may_have_cost() -> None:
    most = ASK.most_input_tokens + 1000
    events, purse, _ = _tried([replace(said("a"), is_cut=True), said("b", usage=None)])
    assert [event["kind"] for event in events] == ["asked", "unanswered", "asked", "replied"]
    assert purse.spent.tokens == 2 * most
    assert spent_in(events) == purse.spent


def test_a_server_that_stays_down_leaves_the_attempt_to_resume() -> None:
    events, purse, _ = _tried([failing(503)] * 2, tries=2)
    assert [event["kind"] for event in events][-1] == "down"
    assert purse.spent.tokens == 0


def test_a_crash_while_asked_counts_as_spent() -> None:
    events, _, _ = _tried([said("a")])
    assert spent_in(events[:1]).tokens == ASK.most_input_tokens + 1000

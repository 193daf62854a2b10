"""What servers that are not OpenAI's answer: errors, usage, reasoning and limits in their words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from evaluator.generate.endpoint import OpenAIEndpoint
from evaluator.generate.exchange import (
    Ask,
    Failed,
    Message,
    Misconfigured,
    Reasoning,
    Rejected,
    Reply,
    Sampling,
    ToolCall,
    Usage,
)
from evaluator.generate.statuses import fault_of
from evaluator.generate.usage import usage_of
from tests.evaluator.generate.server import Answer, Body, Served, failing, in_pieces, said, serving

ASK = Ask(
    model="m",
    messages=(Message(role="user", text="u"),),
    sampling=Sampling(max_output_tokens=32768),
)
VLLM = (
    "This model's maximum context length is 4096 tokens. However, you requested 32968 tokens "
    "({} in the messages, 32768 in the completion). Please reduce the length."
)
VLLM_NOW = (
    "'max_tokens' or 'max_completion_tokens' is too large: 32768. This model's maximum context "
    "length is 4096 tokens and your request has {} input tokens (32768 > 4096 - 200)."
)


def _asked(server: Served, ask: Ask = ASK, **more: Any) -> Reply:
    return OpenAIEndpoint(base_url=server.url, api_key="k", **more).complete(ask, 5.0)


@pytest.mark.parametrize("words", [VLLM, VLLM_NOW])
def test_a_limit_that_does_not_fit_beside_the_input_shrinks(words: str) -> None:
    with serving([failing(400, words.format(200)), said("a")]) as server:
        assert _asked(server).text == "a"
    assert [body["max_tokens"] for body in server.asked] == [32768, 4096 - 200]


@pytest.mark.parametrize("words", [VLLM, VLLM_NOW])
def test_an_input_that_leaves_no_room_for_a_kernel_is_too_long(words: str) -> None:
    with serving([failing(400, words.format(4000))]) as server, pytest.raises(Failed) as caught:
        _asked(server)
    assert caught.value.why == "context"


@pytest.mark.parametrize(
    "words",
    [
        "max_tokens is too large: 32768. This model supports at most 16384 completion tokens.",
        "`max_tokens` must be less than or equal to `16384`, the maximum value for this model",
        "Invalid max_tokens value, the valid range of max_tokens is [1, 16384]",
    ],
)
def test_a_limit_that_no_ask_may_have_ends_the_run_with_what_to_do(words: str) -> None:
    with serving([failing(400, words)]) as server, pytest.raises(Misconfigured) as caught:
        _asked(server)
    assert "--max-output-tokens 16384" in str(caught.value)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "words",
    [
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
        "'max_completion_tokens' instead.",
        "max_tokens: Extra inputs are not permitted",
    ],
)
def test_the_other_name_of_the_limit_is_tried_and_kept(words: str) -> None:
    def script(body: Body) -> Answer:
        return failing(400, words) if "max_tokens" in body else said("a")

    with serving(script) as server:
        endpoint = OpenAIEndpoint(base_url=server.url, api_key="k")
        assert [endpoint.complete(ASK, 5.0).text for _ in range(2)] == ["a", "a"]
    assert [body.get("max_completion_tokens") for body in server.asked] == [None, 32768, 32768]


def test_a_name_that_is_given_is_sent() -> None:
    with serving([said("a")]) as server:
        _asked(server, limit_name="max_completion_tokens")
    assert server.asked[0]["max_completion_tokens"] == 32768


def test_a_server_that_refuses_both_names_ends_after_three_requests() -> None:
    refusing = serving(lambda body: failing(400, f"unknown {' '.join(body)}"))
    with refusing as server, pytest.raises(Rejected):
        _asked(server)
    assert len(server.asked) == 3


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("the context deadline passed", Rejected),
        ("context_length_exceeded", Failed),
        ("Input is too long for requested model.", Failed),
        ("prompt is too long: 210000 tokens > 200000 maximum", Failed),
    ],
)
def test_context_is_only_where_the_input_is_too_long(said: str, kind: type) -> None:
    assert type(fault_of(400, said, said)) is kind


@pytest.mark.parametrize(
    ("told", "usage"),
    [
        # OpenAI: parts of their wholes.
        (
            {
                "prompt_tokens": 100,
                "completion_tokens": 60,
                "total_tokens": 160,
                "prompt_tokens_details": {"cached_tokens": 40},
                "completion_tokens_details": {"reasoning_tokens": 50},
            },
            (100, 40, 60, 50),
        ),
        # xAI: reasoning beside the completion.
        (
            {
                "prompt_tokens": 100,
                "completion_tokens": 60,
                "total_tokens": 210,
                "completion_tokens_details": {"reasoning_tokens": 50},
            },
            (100, 0, 110, 50),
        ),
        (
            {
                "prompt_tokens": 100,
                "completion_tokens": 10,
                "completion_tokens_details": {"reasoning_tokens": 50},
            },
            (100, 0, 60, 50),
        ),
        # Anthropic by a proxy: cached tokens beside the prompt.
        (
            {"input_tokens": 10, "output_tokens": 60, "cache_read_input_tokens": 90},
            (100, 90, 60, 0),
        ),
        (
            {
                "prompt_tokens": 50,
                "completion_tokens": 60,
                "total_tokens": 150,
                "cache_read_input_tokens": 40,
            },
            (90, 40, 60, 0),
        ),
        # Both beside.
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 20,
                "total_tokens": 120,
                "prompt_tokens_details": {"cached_tokens": 40},
                "completion_tokens_details": {"reasoning_tokens": 50},
            },
            (50, 40, 70, 50),
        ),
        # DeepSeek: a name of its own, inside the prompt.
        (
            {
                "prompt_tokens": 100,
                "completion_tokens": 60,
                "total_tokens": 160,
                "prompt_cache_hit_tokens": 64,
            },
            (100, 64, 60, 0),
        ),
    ],
)
def test_usage_of_any_dialect(told: dict[str, Any], usage: tuple[int, int, int, int]) -> None:
    got = usage_of(told)
    assert got == Usage(input=usage[0], cached=usage[1], output=usage[2], reasoning=usage[3])


@pytest.mark.parametrize("told", [None, [], {}, {"prompt_tokens": 5}, {"prompt_tokens": "x"}])
def test_usage_that_is_not_told_is_unknown(told: object) -> None:
    assert usage_of(told) is None


def _reasoned(**fields: object) -> Answer:
    answer = said("the answer")
    answer.document["choices"][0]["message"] |= fields
    return answer


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_reasoning_is_kept_and_sent_back_as_it_came(name: str) -> None:
    with serving([_reasoned(**{name: "I think"}), said("b")]) as server:
        got = _asked(server)
        assert got.reasoning == Reasoning(name=name, text="I think")
        turn = Message(
            role="assistant",
            text=got.text,
            calls=(ToolCall(id="c", name="judge", arguments="{}"),),
            reasoning=got.reasoning,
        )
        result = Message(role="tool", text="ok", call_id="c")
        _asked(server, replace(ASK, messages=(*ASK.messages, turn, result)))
    assert server.asked[1]["messages"][1][name] == "I think"
    assert not {"reasoning", "reasoning_content"} & server.asked[1]["messages"][2].keys()


PARTS = [
    {"type": "thinking", "thinking": [{"type": "text", "text": "I think"}]},
    {"type": "text", "text": "the "},
    {"type": "text", "text": "answer"},
]


def test_a_content_of_parts_is_one_text() -> None:
    with serving([_reasoned(content=PARTS)]) as server:
        got = _asked(server)
    assert got.text == "the answer"
    assert got.reasoning == Reasoning(name="", text="I think")


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_reasoning_in_pieces_is_what_comes_whole(name: str) -> None:
    answer = _reasoned(**{name: "I think"})
    pieces = in_pieces(answer)
    assert pieces.raw is not None
    thought = b'data: {"choices": [{"index": 0, "delta": {"%s": "I think"}}]}\n\n' % name.encode()
    with serving([answer, replace(pieces, raw=thought + pieces.raw)]) as server:
        whole, streamed = _asked(server), _asked(server, is_streamed=True)
    assert replace(streamed, wall_s=0.0) == replace(whole, wall_s=0.0)


def test_parts_in_pieces_are_what_comes_whole() -> None:
    raw = b"".join(
        b'data: {"model": "m", "choices": [{"delta": {"content": %s}}]}\n\n' % part
        for part in (
            b'[{"type": "thinking", "thinking": "I th"}]',
            b'[{"thinking": "ink"}]',
            b'"a"',
        )
    )
    end = b'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}\n\n'
    with serving([Answer(raw=raw + end)]) as server:
        got = _asked(server, is_streamed=True)
    assert (got.text, got.reasoning) == ("a", Reasoning(name="", text="I think"))


def test_what_is_chosen_of_sampling_and_headers_is_sent() -> None:
    sampling = replace(ASK.sampling, top_p=0.9, top_k=40, min_p=0.1, extra='{"a":{"b":1}}')
    with serving([said("a")]) as server:
        _asked(server, replace(ASK, sampling=sampling), headers={"X-Team": "t"})
    (body,) = server.asked
    assert {name: body[name] for name in ("top_p", "top_k", "min_p", "a")} == {
        **{"top_p": 0.9, "top_k": 40, "min_p": 0.1},
        "a": {"b": 1},
    }
    assert server.headers[0]["x-team"] == "t"


def test_an_ask_without_the_newer_fields_keeps_its_digest() -> None:
    """Runs that were recorded before there were any can be gone on with."""
    assert ASK.digest == "239849a22c4957d75846d626cb3d99b50c170ee62d569e2807283a19efc6ef11"

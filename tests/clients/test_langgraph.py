"""LangGraph's graphs and LangChain's agents, which are made of them, over the model for OpenAI's API."""

import pytest
from forecast import MODEL, QUESTION, Forecast
from langchain.agents import create_agent
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from orders import ANSWER, CITY, HELLO, SAY_CALL, SAY_CALLS, SAY_HELLO, SYSTEM, WEATHER
from orders import MODEL as FAKE
from waiting import HANGS_AFTER_S


@tool
def get_weather(city: str) -> str:
    """The weather of a city."""
    return WEATHER


@pytest.fixture(scope="module")
def chat(fake):
    return ChatOpenAI(base_url=fake.url + "/v1", api_key="none", model=FAKE, max_retries=0, timeout=HANGS_AFTER_S,
                      stream_usage=True)


@pytest.fixture(scope="module")
def graph(chat):
    """A model and its tools in turn, whose threads are kept."""
    model = chat.bind_tools([get_weather])

    def ask(state):
        return {"messages": [model.invoke([SystemMessage(SYSTEM), *state["messages"]])]}

    builder = StateGraph(MessagesState)
    builder.add_node("ask", ask)
    builder.add_node("tools", ToolNode([get_weather]))
    builder.add_edge(START, "ask")
    builder.add_conditional_edges("ask", tools_condition)
    builder.add_edge("tools", "ask")
    return builder.compile(checkpointer=InMemorySaver())


def thread(name):
    return {"configurable": {"thread_id": name}}


def asked(text):
    return {"messages": [HumanMessage(text)]}


def check_the_turns(messages):
    assert [type(message) for message in messages] == [HumanMessage, AIMessage, ToolMessage, AIMessage]
    made, = messages[1].tool_calls
    assert (made["name"], made["args"]) == ("get_weather", {"city": CITY})
    assert messages[2].tool_call_id == made["id"] and messages[-1].content == ANSWER
    first, second = (messages[i].usage_metadata["input_tokens"] for i in (1, 3))
    assert second > first


def test_a_tool_is_called_and_its_result_is_told(graph):
    check_the_turns(graph.invoke(asked(SAY_CALL), thread("whole"))["messages"])


def test_several_calls_of_one_answer(graph):
    messages = graph.invoke(asked(SAY_CALLS), thread("calls"))["messages"]
    assert messages[1].content == "Look:" and len(messages[1].tool_calls) == 2
    assert [type(message) for message in messages[2:]] == [ToolMessage, ToolMessage, AIMessage]
    assert messages[-1].content == ANSWER


def test_a_streamed_graph(graph):
    pieces = list(graph.stream(asked(SAY_CALL), thread("stream"), stream_mode="messages"))
    assert any(piece.tool_call_chunks for piece, _ in pieces if isinstance(piece, AIMessageChunk))
    texts = [piece.content for piece, told in pieces
             if isinstance(piece, AIMessageChunk) and told["langgraph_node"] == "ask" and piece.content]
    assert len(texts) > 2 and "".join(texts) == ANSWER
    check_the_turns(graph.get_state(thread("stream")).values["messages"])


def test_a_thread_goes_on(graph):
    graph.invoke(asked(SAY_CALL), thread("kept"))
    messages = graph.invoke(asked(SAY_HELLO), thread("kept"))["messages"]
    check_the_turns(messages[:4])
    assert len(messages) == 6 and messages[-1].content == HELLO
    assert messages[-1].usage_metadata["input_tokens"] > messages[3].usage_metadata["input_tokens"]


def test_an_agent(run, chat):
    agent = create_agent(chat, [get_weather], system_prompt=SYSTEM)
    check_the_turns(agent.invoke(asked(SAY_CALL))["messages"])
    check_the_turns(run(agent.ainvoke(asked(SAY_CALL)))["messages"])


@pytest.mark.parametrize("strategy", [ProviderStrategy, ToolStrategy])
def test_an_agent_answers_by_a_model(base_url, strategy):
    model = ChatOpenAI(base_url=base_url, api_key="none", model=MODEL, max_retries=0, timeout=HANGS_AFTER_S,
                       max_tokens=300, model_kwargs={"parallel_tool_calls": False})
    agent = create_agent(model, [], response_format=strategy(Forecast))
    assert isinstance(agent.invoke(asked(QUESTION))["structured_response"], Forecast)

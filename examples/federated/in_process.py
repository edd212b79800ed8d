"""A federation of Flower inside one process: real messages and records, but no server, daemon or Ray."""

from collections.abc import Iterable
from typing import Any
from uuid import uuid4

from flwr.app import Context, Error, Message, RecordDict
from flwr.serverapp import Grid
from flwr.supercore.run import Run

CLIENT_FAILED = 1


class InProcessGrid(Grid):
    """Every message is answered at once by the client app; a client that raises answers with an error."""

    def __init__(self, client_app: Any, nodes: int) -> None:
        identify()
        self.client_app = client_app
        self.nodes = list(range(10, 10 + nodes))
        self.contexts = {
            node: Context(
                run_id=1,
                node_id=node,
                node_config={"partition-id": place, "num-partitions": nodes},
                state=RecordDict(),
                run_config={},
            )
            for place, node in enumerate(self.nodes)
        }
        self._run = Run.create_empty(1)
        self._waiting: dict[str, Message] = {}

    def set_run(self, run: Run) -> None:
        self._run = run

    @property
    def run(self) -> Run:
        return self._run

    def create_message(self, content, message_type, dst_node_id, group_id, ttl=None) -> Message:
        return Message(content, dst_node_id, message_type, ttl=ttl, group_id=group_id)

    def get_node_ids(self) -> Iterable[int]:
        return list(self.nodes)

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        ids = []
        for message in messages:
            # A server would number the messages that it takes.
            message.metadata.__dict__["_message_id"] = str(uuid4())
            ids.append(message.metadata.message_id)
            self._waiting[ids[-1]] = message
        return ids

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        return [self._answer(self._waiting.pop(name)) for name in message_ids]

    def send_and_receive(self, messages: Iterable[Message], *, timeout=None) -> Iterable[Message]:
        return list(self.pull_messages(self.push_messages(messages)))

    def _answer(self, message: Message) -> Message:
        try:
            return self.client_app(message, self.contexts[message.metadata.dst_node_id])
        except Exception as error:
            return Message(Error(CLIENT_FAILED, repr(error)), reply_to=message)


def identify() -> None:
    """Messages carry the identity of the process that makes them, which a server would have given to it."""
    try:
        from flwr.supercore.task_identity import TaskIdentity
    except ImportError:  # versions without it need none
        return
    TaskIdentity.run_id, TaskIdentity.task_id, TaskIdentity.node_id = 1, 1, 1

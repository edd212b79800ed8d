"""Mods of Flower: what a client does to its own replies before they leave.

A mod is a function of a message, the context of the client, and what comes next; it is listed in
`ClientApp(mods=[...])`. The noise comes last, so its mod is the first of the list.
"""

import json
import logging
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.checks import Number, boolean
from sfumato.errors import InvalidParameter, MissingExtra
from sfumato.federated.clipping import Shapes, checked_bound, clip
from sfumato.federated.flower_replies import difference
from sfumato.federated.local import LocalNoise
from sfumato.laws import Bits
from sfumato.privacy import ZCDP, ApproxDP

__all__ = ["clip_mod", "local_dp_mod"]

Mod = Callable[[Any, Any, Callable[[Any, Any], Any]], Any]
Layers = list[NDArray[Any]]

_log = logging.getLogger("flwr")
# Where a client keeps how often it answered; it stays on the client.
STATE = "sfumato-local-dp"
# Of Flower's codes: a mod could not do what it is for.
_MOD_FAILED = 6


def clip_mod(bound: Number) -> Mod:
    """A mod that clips a client's update to an L2 norm of at most `bound`, over all layers together.

    Guarantee:
        What leaves differs from the model that was sent by at most `bound`, up to the rounding of the
        model's own type; an update that is misshapen or not finite leaves as no change. Clipping alone is
        no privacy: the server adds the noise. Leave it out where `CentralDP` adapts its bound, because a
        clipped update always fits, and the server would lower the bound for ever.

    Args:
        bound: the clipping bound.

    Raises:
        InvalidParameter: the bound is out of range.
        MissingExtra: Flower is not installed.

    References:
        [MRTZ18].

    >>> callable(clip_mod(1))
    True
    """
    limit = checked_bound(bound)

    def mod(message: Any, context: Any, call_next: Callable[[Any, Any], Any]) -> Any:
        reply = call_next(message, context)
        if not _training(message) or reply.has_error():
            return reply
        name, names, layers = _sent(message)
        update = difference(reply, names, layers)
        clipped = clip(update, limit, shapes=_shapes(layers)).values(limit)
        for place in list(reply.content.array_records):
            del reply.content[place]
        reply.content[name] = _record(names, layers, clipped)
        return reply

    return mod


def local_dp_mod(
    budget: ApproxDP | ZCDP,
    bound: Number,
    *,
    rounds: int = 1,
    release_metrics: bool = False,
    weight_key: str = "num-examples",
    bits: Bits | None = None,
) -> Mod:
    r"""A mod that makes a client's update private before it leaves, for a server that is not trusted.

    Guarantee:
        All updates that leave in one run of Flower satisfy `budget` together, whatever the client's data
        are: the sensitivity is twice the bound. A client that fails, or whose update is not
        finite, sends noise alone. After `rounds` answers it sends an error in place of more. Metrics are
        replaced by a weight of 1 and evaluations are not run, unless `release_metrics`, and then they
        are outside of the guarantee. Proof: docs/proofs/federated.md.

    Args:
        budget: ApproxDP or ZCDP, for all rounds together.
        bound: the clipping bound.
        rounds: how many times the client answers in a run; it counts in its own context.
        release_metrics: whether metrics and evaluations leave as they are.
        weight_key: the name of the weight that the strategy asks for.
        bits: where the noise comes from, the operating system unless told.

    Raises:
        InvalidParameter: a number out of range.
        MissingExtra: Flower is not installed.

    References:
        [BW18], [CKS20].

    >>> import sfumato as sf
    >>> callable(local_dp_mod(sf.ApproxDP(8, 1e-5), bound=1, rounds=10))
    True
    """

    @lru_cache(maxsize=4)
    def noise_for_model(shapes: Shapes) -> LocalNoise:
        return LocalNoise(budget=budget, bound=checked_bound(bound), shapes=shapes, rounds=rounds)

    noise_for_model(((1,),))  # a budget or bound that cannot be kept is refused now, and not on a client
    boolean("release_metrics", release_metrics)

    def mod(message: Any, context: Any, call_next: Callable[[Any, Any], Any]) -> Any:
        app = _flower()
        neutral = {"metrics": app.MetricRecord({weight_key: 1.0})}
        if not _training(message):
            if release_metrics:
                return call_next(message, context)
            return app.Message(app.RecordDict(neutral), reply_to=message)
        name, names, layers = _sent(message)
        refusal = _counted(context, _shapes(layers), rounds)
        if refusal:
            return app.Message(app.Error(_MOD_FAILED, refusal), reply_to=message)
        update, metrics = None, neutral
        try:
            reply = call_next(message, context)
            update = difference(reply, names, layers)
            if release_metrics and reply.has_content():
                metrics = dict(reply.content.metric_records)
        except Exception as error:  # that a client failed on its data must not show
            _log.warning("The client failed with %s; it sends noise alone.", type(error).__name__)
        noisy = noise_for_model(_shapes(layers)).release(update, bits)
        content = {**metrics, name: _record(names, layers, noisy)}
        return app.Message(app.RecordDict(content), reply_to=message)

    return mod


def _flower() -> Any:
    try:
        import flwr.app
    except ImportError as error:
        raise MissingExtra('a mod of Flower needs the package flwr: pip install "sfumato[flower]"') from error
    return flwr.app


def _training(message: Any) -> bool:
    return str(message.metadata.message_type).partition(".")[0] == "train"


def _sent(message: Any) -> tuple[str, tuple[str, ...], Layers]:
    """The model in a message: where it stands, the names of its layers, the layers."""
    if len(message.content.array_records) != 1:
        raise InvalidParameter("message must hold the arrays of one model, got another number of them")
    ((name, record),) = message.content.array_records.items()
    return name, tuple(record.keys()), [np.asarray(array.numpy()) for array in record.values()]


def _shapes(layers: Layers) -> Shapes:
    return tuple(layer.shape for layer in layers)


def _record(names: tuple[str, ...], layers: Layers, changes: tuple[NDArray[Any], ...]) -> Any:
    app = _flower()
    with np.errstate(over="ignore", invalid="ignore"):
        moved = [old.astype(np.float64) + change for old, change in zip(layers, changes, strict=True)]
        # Whole numbers would lose the noise to rounding; the server rounds them.
        kinds = [old.dtype if old.dtype.kind == "f" else np.dtype(np.float64) for old in layers]
        arrays = [new.astype(kind) for new, kind in zip(moved, kinds, strict=True)]
    return app.ArrayRecord({name: app.Array(array) for name, array in zip(names, arrays, strict=True)})


def _counted(context: Any, shapes: Shapes, rounds: int) -> str | None:
    """Count one more answer before it is computed, or say why there is none."""
    app = _flower()
    model = json.dumps(shapes)
    kept: Any = context.state.get(STATE, {"rounds": 0, "model": model})
    if kept["model"] != model:
        return "the noise was made for a model of other shapes"
    if kept["rounds"] >= rounds:
        return f"the local budget pays for {rounds} answers, and they were given"
    context.state[STATE] = app.ConfigRecord({"rounds": kept["rounds"] + 1, "model": model})
    return None

"""Handwritten digits that ship with scikit-learn, dealt to fictional clients; softmax regression in NumPy.

Each client holds a few images and trains on them alone. The privacy unit is a client with all its images.
"""

from dataclasses import dataclass

import numpy as np

try:
    from sklearn.datasets import load_digits
except ImportError:
    raise SystemExit("the digits come with scikit-learn: pip install '.[lab]'") from None

CLIENTS = 400
CLASSES = 10
TEST_SHARE = 5  # every fifth image is kept for the test


@dataclass(frozen=True)
class Digits:
    """Images of each client, and images that no client has, for the test."""

    clients: list[tuple[np.ndarray, np.ndarray]]
    test_images: np.ndarray
    test_labels: np.ndarray


def digits(clients: int = CLIENTS) -> Digits:
    """The images in a fixed order that mixes the digits, dealt in turn."""
    images, labels = load_digits(return_X_y=True)
    images = images / 16.0
    # A fixed shuffle: the example is the same at every run, but for the noise.
    order = np.argsort((np.arange(len(labels)) * 7919) % 104729)
    images, labels = images[order], labels[order]
    kept = np.arange(len(labels)) % TEST_SHARE == 0
    seen, seen_labels = images[~kept], labels[~kept]
    owner = np.arange(len(seen)) % clients
    return Digits(
        clients=[(seen[owner == client], seen_labels[owner == client]) for client in range(clients)],
        test_images=images[kept],
        test_labels=labels[kept],
    )


def start() -> list[np.ndarray]:
    """A model that knows nothing: weights and biases of zero."""
    return [np.zeros((64, CLASSES)), np.zeros(CLASSES)]


def trained(model, images, labels, *, steps: int = 3, rate: float = 1.0) -> list[np.ndarray]:
    """The model after some steps of gradient descent on one client's images."""
    weights, biases = (np.array(layer, dtype=np.float64) for layer in model)
    target = np.eye(CLASSES)[labels]
    for _ in range(steps):
        gap = (probabilities([weights, biases], images) - target) / max(1, len(labels))
        weights -= rate * images.T @ gap
        biases -= rate * gap.sum(axis=0)
    return [weights, biases]


def probabilities(model, images) -> np.ndarray:
    """What the model thinks of each image."""
    scores = images @ model[0] + model[1]
    odds = np.exp(scores - scores.max(axis=1, keepdims=True))
    return odds / odds.sum(axis=1, keepdims=True)


def accuracy(model, data: Digits) -> float:
    """The share of test images that the model reads right."""
    found = probabilities(model, data.test_images).argmax(axis=1)
    return float((found == data.test_labels).mean())

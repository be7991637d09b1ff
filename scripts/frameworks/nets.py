"""The nets of `just bench-frameworks`, with random weights that depend on a seed alone.

Eight nets for images come from torchvision, as published; Inception-v3 and GoogLeNet without auxiliary classifiers.
`bert` is an encoder of the size of BERT-base over 64 tokens; `seq2seq` is an encoder and a decoder of two LSTM layers
each, over sentences whose length changes from propagation to propagation.
"""

import math
from typing import NamedTuple

import torch
from torch import nn

SEED = 7
CLASSES = 1000
TOKENS = 64
VOCABULARY = 8000
# Lengths of sentences; one turn through all of them is one sample.
LENGTHS = (12, 16, 20, 24, 28, 32, 36, 40)


class Kind(NamedTuple):
    """How to make a net, and its inputs."""

    torchvision: str  # the function of torchvision.models, or empty
    arguments: dict  # its arguments
    side: int  # pixels of a side of an image


IMAGES = {
    "alexnet": Kind("alexnet", {}, 224),
    "squeezenet1-1": Kind("squeezenet1_1", {}, 224),
    "mobilenet-v2": Kind("mobilenet_v2", {}, 224),
    "googlenet": Kind("googlenet", {"aux_logits": False, "init_weights": False}, 224),
    "resnet18": Kind("resnet18", {}, 224),
    "resnet50": Kind("resnet50", {}, 224),
    "inception-v3": Kind("inception_v3", {"aux_logits": False, "init_weights": False}, 299),
    "densenet121": Kind("densenet121", {}, 224),
}
NETS = (*IMAGES, "bert", "seq2seq")


class Attention(nn.Module):
    """A layer of BERT: attention of twelve heads over all tokens, and the rest."""

    def __init__(self, width: int = 768, heads: int = 12):
        super().__init__()
        self.heads = heads
        self.project = nn.Linear(width, 3 * width)
        self.join = nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        batch, length, width = tokens.shape
        split = (batch, length, 3, self.heads, width // self.heads)
        query, key, value = self.project(tokens).reshape(split).permute(2, 0, 3, 1, 4).unbind(0)
        weights = (query @ key.transpose(-2, -1) / math.sqrt(width // self.heads)).softmax(dim=-1)
        mixed = (weights @ value).transpose(1, 2).reshape(batch, length, width)
        tokens = self.norms[0](tokens + self.join(mixed))
        return self.norms[1](tokens + self.feed(tokens))


class Bert(nn.Module):
    """An encoder of the size of BERT-base, with a classifier on its first token."""

    def __init__(self, width: int = 768, layers: int = 12, words: int = 30522):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.places = nn.Embedding(TOKENS, width)
        self.layers = nn.Sequential(*(Attention(width) for _ in range(layers)))
        self.classes = nn.Linear(width, CLASSES)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        tokens = self.words(words) + self.places(torch.arange(words.shape[1]))
        return self.classes(self.layers(tokens)[:, 0])


class Seq2seq(nn.Module):
    """Reads a sentence and scores each word of a given second one of the same length."""

    def __init__(self, width: int = 512, layers: int = 2):
        super().__init__()
        self.words = nn.Embedding(VOCABULARY, width)
        self.encoder = nn.LSTM(width, width, layers, batch_first=True)
        self.decoder = nn.LSTM(width, width, layers, batch_first=True)
        self.scores = nn.Linear(width, VOCABULARY)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        words = self.words(words)
        _, state = self.encoder(words)
        decoded, _ = self.decoder(words, state)
        return self.scores(decoded).flatten(0, 1)


def make(net: str) -> nn.Module:
    """The net, with the seed's weights."""
    torch.manual_seed(SEED)
    if net == "bert":
        return Bert()
    if net == "seq2seq":
        return Seq2seq()
    import torchvision

    kind = IMAGES[net]
    return getattr(torchvision.models, kind.torchvision)(**kind.arguments)


def inputs(net: str, batch: int) -> list:
    """The inputs of the propagations in turn, with their targets: one input; for `seq2seq` one for each length."""
    torch.manual_seed(SEED + 1)
    if net == "bert":
        return [(torch.randint(30522, (batch, TOKENS)), torch.randint(CLASSES, (batch,)))]
    if net == "seq2seq":
        order = torch.randperm(len(LENGTHS)).tolist()
        sentence = lambda length: torch.randint(VOCABULARY, (batch, length))
        return [(sentence(LENGTHS[at]), sentence(LENGTHS[at]).flatten()) for at in order]
    side = IMAGES[net].side
    return [(torch.randn(batch, 3, side, side), torch.randint(CLASSES, (batch,)))]

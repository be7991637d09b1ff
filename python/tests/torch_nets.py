"""Small nets for the tests of steps without compilation; each maker returns a module that returns its loss, and inputs."""

import torch
from torch import nn
from torch.nn import functional

CLASSES = 10


class Classifier(nn.Module):
    """A net with the loss of its classes."""

    def __init__(self, body):
        super().__init__()
        self.body = body

    def forward(self, x, targets):
        scores = self.body(x)
        return functional.cross_entropy(scores.flatten(0, -2), targets.flatten())


class Shortcut(nn.Module):
    """The basic block of a ResNet, with activations in place."""

    def __init__(self, channels):
        super().__init__()
        self.first, self.second = (nn.Conv2d(channels, channels, 3, padding=1, bias=False) for _ in range(2))
        self.norms = nn.ModuleList(nn.BatchNorm2d(channels) for _ in range(2))
        self.activation = nn.ReLU(inplace=True)

    def forward(self, x):
        y = self.activation(self.norms[0](self.first(x)))
        return self.activation(self.norms[1](self.second(y)) + x)


class UNet(nn.Module):
    """Two levels down and up, with the features of the way down beside those of the way up."""

    def __init__(self, channels=8):
        super().__init__()
        self.down = nn.ModuleList((self.double(3, channels), self.double(channels, 2 * channels)))
        self.bottom = self.double(2 * channels, 4 * channels)
        self.grow = nn.ModuleList(nn.ConvTranspose2d(width, width // 2, 2, 2) for width in (4 * channels, 2 * channels))
        self.up = nn.ModuleList((self.double(4 * channels, 2 * channels), self.double(2 * channels, channels)))
        self.head = nn.Conv2d(channels, CLASSES, 1)

    def double(self, inputs, outputs):
        layers = [nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU()]
        layers += [nn.Conv2d(outputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU()]
        return nn.Sequential(*layers)

    def forward(self, x):
        features = []
        for block in self.down:
            x = block(x)
            features.append(x)
            x = functional.max_pool2d(x, 2)
        x = self.bottom(x)
        for grow, block in zip(self.grow, self.up, strict=True):
            x = block(torch.cat([features.pop(), grow(x)], 1))
        return self.head(x).movedim(1, -1)


class Block(nn.Module):
    """Attention and two layers, with dropout; the normalisation comes first as in GPT, or last as in BERT."""

    def __init__(self, width, is_causal):
        super().__init__()
        self.is_causal = is_causal
        self.attention, self.projection = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.dropout = nn.Dropout(0.1)

    def attend(self, x):
        batch, length, width = x.shape
        parts = self.attention(x).view(batch, length, 3, 2, width // 2).permute(2, 0, 3, 1, 4)
        attended = functional.scaled_dot_product_attention(*parts, is_causal=self.is_causal)
        return self.dropout(self.projection(attended.transpose(1, 2).reshape(batch, length, width)))

    def widen(self, x):
        return self.dropout(self.narrow(functional.gelu(self.wide(x))))

    def forward(self, x):
        if self.is_causal:
            x = x + self.attend(self.norms[0](x))
            return x + self.widen(self.norms[1](x))
        x = self.norms[0](x + self.attend(x))
        return self.norms[1](x + self.widen(x))


class Language(nn.Module):
    """A transformer whose head has the weights of its table of words."""

    def __init__(self, is_causal, blocks=3, width=32, words=40, length=16):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Parameter(torch.zeros(length, width))
        self.blocks = nn.Sequential(*(Block(width, is_causal) for _ in range(blocks)))
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.words.weight

    def forward(self, tokens):
        return self.head(self.blocks(self.words(tokens) + self.places))


class Recurrent(nn.Module):
    """Two layers of an LSTM."""

    def __init__(self, width=16):
        super().__init__()
        self.words, self.layers = nn.Embedding(40, width), nn.LSTM(width, width, 2, batch_first=True)
        self.middle, self.head = nn.Linear(width, 4 * width), nn.Linear(4 * width, 40)

    def forward(self, tokens):
        return self.head(torch.tanh(self.middle(self.layers(self.words(tokens))[0])))


def perceptron():
    layers = [layer for width in (32, 64, 64, 64) for layer in (nn.Linear(width, 64), nn.GELU())]
    return Classifier(nn.Sequential(*layers, nn.Linear(64, CLASSES))), rows(256, 32)


def resnet():
    layers = [nn.Conv2d(3, 8, 3, padding=1), *(Shortcut(8) for _ in range(3))]
    return Classifier(nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, CLASSES))), images(4)


def vgg():
    layers = []
    for inputs, outputs in ((3, 8), (8, 16)):
        layers += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU(True)]
        layers += [nn.Conv2d(outputs, outputs, 3, padding=1), nn.ReLU(True), nn.MaxPool2d(2)]
    layers += [nn.Flatten(), nn.Linear(256, 64), nn.ReLU(True), nn.Dropout(), nn.Linear(64, CLASSES)]
    return Classifier(nn.Sequential(*layers)), images(16)


def unet():
    return Classifier(UNet()), (torch.randn(2, 3, 16, 16), torch.randint(0, CLASSES, (2, 16, 16)))


def gpt():
    return Classifier(Language(is_causal=True)), words(16)


def bert():
    return Classifier(Language(is_causal=False)), words(16)


def lstm():
    return Classifier(Recurrent()), words(16)


def rows(count, width):
    return torch.randn(count, width), torch.randint(0, CLASSES, (count,))


def images(count):
    return torch.randn(count, 3, 16, 16), torch.randint(0, CLASSES, (count,))


def words(count):
    return torch.randint(0, 40, (count, 16)), torch.randint(0, 40, (count, 16))


NETS = (perceptron, resnet, vgg, unet, gpt, bert, lstm)

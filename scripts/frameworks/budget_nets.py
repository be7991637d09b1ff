"""The nets of `just bench-budget`: modules that return their loss, with weights and inputs that depend on a seed alone.

They are small relatives of published nets, so that a step takes about a second on one core, and activations are most of its
memory. Each runs its blocks through a function that the caller chooses, such as a checkpoint around each block.
"""

import torch
from nets import CLASSES, SEED, Attention
from torch import nn
from torch.nn import functional

WORDS = 1000
WIDTH = 256
LENGTH = 128


def call_block(block, x):
    return block(x)


class Chain(nn.Module):
    """Blocks one after the other, and the loss of what the last one returns. The last one always runs as it is."""

    def __init__(self, blocks, run_block):
        super().__init__()
        self.blocks = nn.ModuleList(blocks)
        self.run_block = run_block

    def forward(self, x, targets):
        *blocks, head = self.blocks
        for block in blocks:
            x = self.run_block(block, x)
        return functional.cross_entropy(head(x).flatten(0, -2), targets.flatten())


def convolve(inputs, outputs, size=3, stride=1):
    """A convolution with its normalisation."""
    layer = nn.Conv2d(inputs, outputs, size, stride, padding=size // 2, bias=False)
    return nn.Sequential(layer, nn.BatchNorm2d(outputs))


class Residual(nn.Module):
    """A block of ResNet-18."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.first, self.second = convolve(inputs, outputs, 3, stride), convolve(outputs, outputs)
        self.shortcut = nn.Identity() if inputs == outputs else convolve(inputs, outputs, 1, stride)

    def forward(self, x):
        return functional.relu(self.second(functional.relu(self.first(x))) + self.shortcut(x))


def image_head(channels):
    return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, CLASSES))


def make_resnet18(run_block):
    blocks = [nn.Sequential(convolve(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1))]
    for inputs, outputs, stride in ((64, 64, 1), (64, 128, 2), (128, 256, 2), (256, 512, 2)):
        blocks += [Residual(inputs, outputs, stride), Residual(outputs, outputs, 1)]
    return Chain([*blocks, image_head(512)], run_block)


def make_vgg(run_block):
    """Two convolutions a stage, as VGG-13 has them, and dropout before the classes."""
    blocks, inputs = [], 3
    for outputs in (32, 64, 128, 256):
        layers = (nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU(), nn.Conv2d(outputs, outputs, 3, padding=1))
        blocks.append(nn.Sequential(*layers, nn.ReLU(), nn.MaxPool2d(2)))
        inputs = outputs
    head = nn.Sequential(nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(4096, 512), nn.ReLU(), nn.Dropout(0.5))
    return Chain([*blocks, nn.Sequential(head, nn.Linear(512, CLASSES))], run_block)


class Unet(nn.Module):
    """U-Net with a class for each pixel: what a level of the way down returns is read again on the way up."""

    def __init__(self, run_block, widths=(16, 32, 64, 128)):
        super().__init__()
        double = lambda inputs, outputs: nn.Sequential(
            convolve(inputs, outputs), nn.ReLU(), convolve(outputs, outputs), nn.ReLU()
        )
        self.down = nn.ModuleList(double(*pair) for pair in zip((3, *widths), widths))
        self.up = nn.ModuleList(double(low + high, low) for low, high in zip(widths, widths[1:]))
        self.head = nn.Conv2d(widths[0], 10, 1)
        self.run_block = run_block

    def forward(self, x, targets):
        levels = []
        for block in self.down:
            levels.append(self.run_block(block, functional.max_pool2d(levels[-1], 2) if levels else x))
        x = levels.pop()
        for block in reversed(self.up):
            x = self.run_block(block, torch.cat([functional.interpolate(x, scale_factor=2.0), levels.pop()], 1))
        return functional.cross_entropy(self.head(x), targets)


class Tokens(nn.Module):
    """The embeddings of tokens and of their places."""

    def __init__(self, dropout):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Parameter(torch.randn(LENGTH, WIDTH) * 0.02)
        self.dropout = nn.Dropout(dropout)

    def forward(self, words):
        return self.dropout(self.words(words) + self.places)


class Decoder(nn.Module):
    """A block of GPT-2 with its dropout."""

    def __init__(self, dropout):
        super().__init__()
        self.before_attention, self.before_layers = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention, self.projection = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.layers = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.attention(self.before_attention(x)).view(batch, length, 3, width // 64, 64)
        attended = functional.scaled_dot_product_attention(*parts.permute(2, 0, 3, 1, 4), is_causal=True)
        x = x + self.dropout(self.projection(attended.transpose(1, 2).reshape(batch, length, width)))
        return x + self.dropout(self.layers(self.before_layers(x)))


def make_gpt(run_block):
    blocks = [Tokens(0.1), *(Decoder(0.1) for _ in range(6))]
    return Chain([*blocks, nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS))], run_block)


def make_bert(run_block):
    """Layers of BERT, whose attention has all its weights in memory."""
    blocks = [Tokens(0.0), *(Attention(WIDTH, 4) for _ in range(6))]
    return Chain([*blocks, nn.Linear(WIDTH, WORDS)], run_block)


class Recurrent(nn.Module):
    """A layer of an LSTM, step by step."""

    def __init__(self):
        super().__init__()
        self.outer, self.inner = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(WIDTH, 4 * WIDTH, bias=False)

    def forward(self, x):
        hidden = cell = torch.zeros_like(x[:, 0])
        outputs = []
        for gates in self.outer(x).unbind(1):
            update, forget, output, change = (gates + self.inner(hidden)).chunk(4, 1)
            cell = forget.sigmoid() * cell + update.sigmoid() * change.tanh()
            hidden = output.sigmoid() * cell.tanh()
            outputs.append(hidden)
        return torch.stack(outputs, 1)


def make_lstm(run_block):
    blocks = [nn.Embedding(WORDS, WIDTH), Recurrent(), Recurrent()]
    return Chain([*blocks, nn.Linear(WIDTH, WORDS)], run_block)


def draw_images(side):
    return lambda batch: (torch.randn(batch, 3, side, side), torch.randint(CLASSES, (batch,)))


def draw_pixels(batch):
    return torch.randn(batch, 3, 64, 64), torch.randint(10, (batch, 64, 64))


def draw_sentences(length):
    return lambda batch: (torch.randint(WORDS, (batch, length)), torch.randint(WORDS, (batch, length)))


NETS = {
    "resnet18": (make_resnet18, draw_images(96)),
    "vgg": (make_vgg, draw_images(64)),
    "unet": (Unet, draw_pixels),
    "gpt": (make_gpt, draw_sentences(LENGTH)),
    "bert": (make_bert, draw_sentences(LENGTH)),
    "lstm": (make_lstm, draw_sentences(20)),
}


def make_net(name, batch, run_block=call_block):
    """The net in training, and its inputs with the targets."""
    make, draw = NETS[name]
    torch.manual_seed(SEED)
    net = make(run_block).train()
    torch.manual_seed(SEED + 1)
    return net, draw(batch)

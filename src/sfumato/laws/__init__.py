"""Laws: discrete distributions with exact samplers, and the only folder that makes randomness."""

from sfumato.laws.bits import Bits, KeyedBits, RequestBits, SeededBits, SystemBits, default_bits
from sfumato.laws.bounded import BoundedNoise
from sfumato.laws.choice import Choice, weight_table
from sfumato.laws.clamped import Clamped
from sfumato.laws.coins import bernoulli, bernoulli_exp, exp_bounds
from sfumato.laws.combine import Joint, Point
from sfumato.laws.crossing import FirstCrossing
from sfumato.laws.gaussian import DiscreteGaussian
from sfumato.laws.geometric import Geometric
from sfumato.laws.laplace import DiscreteLaplace
from sfumato.laws.law import Law
from sfumato.laws.selection import Peeled, Selection
from sfumato.laws.shifted import Shifted
from sfumato.laws.truncated import TruncatedLaplace
from sfumato.laws.zero_sum import ZeroSumLaplace

__all__ = [
    "Bits",
    "BoundedNoise",
    "Choice",
    "Clamped",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "FirstCrossing",
    "Geometric",
    "Joint",
    "KeyedBits",
    "Law",
    "Peeled",
    "Point",
    "RequestBits",
    "SeededBits",
    "Selection",
    "Shifted",
    "SystemBits",
    "TruncatedLaplace",
    "ZeroSumLaplace",
    "bernoulli",
    "bernoulli_exp",
    "default_bits",
    "exp_bounds",
    "weight_table",
]

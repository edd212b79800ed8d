"""Figure 18: one draw of the exponential mean for each number of cells, at ε = 0.8."""

from sfumato.lab import grid_draws

FIGURE = grid_draws.figure(
    number="18",
    name="draws-on-finer-grids",
    title="Draws on finer and finer grids",
    captions={
        "published": "One draw for each N, on even and on odd grids. The draws do not come closer to 1/2 "
        "as N grows, and their spread stays √2/λ = 0.0035, λ = nε/2: what converges is the law of a draw, "
        "not the draw. In the text the utility is -|o - 1/2|, which does not look at the data; here it is "
        "the mean of data with mean 1/2.",
        "corrected": "The exponential mean of sfumato, with N from ten thousand to ten million. "
        "Independent draws keep their spread for ever. If all grids use the same random number, u = 0.9, "
        "their draws settle at once: the lack of convergence is a matter of the coupling, not of the law.",
    },
    epsilon=0.8,
    spread="0.003536",
    radius="0.00749",
)

"""Push-sum (Kempe, Dobra, Gehrke, FOCS 2003, Algorithm 1): every node learns the average."""

import numpy as np

from gossamer.protocol.kernel.draws import below, mix
from gossamer.protocol.kernel.float_bits import float_to_word, word_to_float
from gossamer.protocol.kernel.records import BODY, KIND, USER, close_record, open_record
from gossamer.protocol.kernel.rules import rule
from gossamer.protocol.kernel.struct import Struct
from gossamer.sim.engine.cycle_engine import CycleEngine, make_network
from gossamer.sim.engine.protocol_run import ProtocolRun, once

TURN, SHARE = USER, USER + 1


class Shares(Struct):
    total: np.ndarray
    weight: np.ndarray


@rule
def step(state, p, now, words, at, out):
    if words[at + KIND] == TURN:  # keep one half, send the other to a random node
        state.total[p] /= 2
        state.weight[p] /= 2
        share = open_record(out, SHARE, below(mix(1, p, now), len(state.total)), p, 2)
        out.words[share + BODY] = float_to_word(state.total[p])
        out.words[share + BODY + 1] = float_to_word(state.weight[p])
        close_record(out, share, 2)
    elif words[at + KIND] == SHARE:
        state.total[p] += word_to_float(words[at + BODY])
        state.weight[p] += word_to_float(words[at + BODY + 1])


def change_values(engine):  # a control
    engine.state.total[::3] += 1


def variance(engine):  # an observer
    return np.var(engine.state.total / engine.state.weight)


def main(nodes=100_000, cycles=30):
    state = Shares(total=np.random.default_rng(1).random(nodes), weight=np.ones(nodes))
    engine = CycleEngine(state, step, (TURN,), make_network(nodes), seed=1)
    changes = [(change_values, once(cycles // 2))]
    run = ProtocolRun(engine, controls=changes, observers={"variance": variance})
    run.run(cycles)
    run.print_table()
    return run


if __name__ == "__main__":
    main()

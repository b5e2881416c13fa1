"""Push-sum (Kempe, Dobra, Gehrke, FOCS 2003, Algorithm 1): every node learns the average."""

import numpy as np

import gossamer.sim as gs

TURN, SHARE = gs.USER, gs.USER + 1


class Shares(gs.Struct):
    total: np.ndarray
    weight: np.ndarray


@gs.rule
def step(state, p, now, words, at, out):
    if words[at + gs.KIND] == TURN:  # keep one half, send the other to a random node
        state.total[p] /= 2
        state.weight[p] /= 2
        share = gs.open_record(out, SHARE, gs.below(gs.mix(1, p, now), len(state.total)), p, 2)
        out.words[share + gs.BODY] = gs.float_to_word(state.total[p])
        out.words[share + gs.BODY + 1] = gs.float_to_word(state.weight[p])
        gs.close_record(out, share, 2)
    elif words[at + gs.KIND] == SHARE:
        state.total[p] += gs.word_to_float(words[at + gs.BODY])
        state.weight[p] += gs.word_to_float(words[at + gs.BODY + 1])


def change_values(engine):  # a control
    engine.state.total[::3] += 1


def variance(engine):  # an observer
    return np.var(engine.state.total / engine.state.weight)


def main(nodes=100_000, cycles=30):
    state = Shares(total=np.random.default_rng(1).random(nodes), weight=np.ones(nodes))
    engine = gs.CycleEngine(state, step, (TURN,), gs.make_network(nodes), seed=1)
    changes = [(change_values, gs.once(cycles // 2))]
    run = gs.ProtocolRun(engine, controls=changes, observers={"variance": variance})
    run.run(cycles)
    run.print_table()
    return run


if __name__ == "__main__":
    main()

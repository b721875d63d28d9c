"""The Gluon text of attention by the copy engine and warp groups; `pipelined_attention` fills in the words.

`copy_steps` is what the copying warp does, `attend` what each group does with half of a tile's rows. Keys come from the
last step to the first, so that those on the diagonal of a causal mask are first. `find_powers` is the running softmax.
"""

from __future__ import annotations

from typing import Final

__all__ = ["COPIED", "PIN", "TEXT"]

COPIED: Final = "q_room, k_ring, v_ring, q_full, q_empty, k_full, k_empty, v_full, v_empty"
"""What the copying warp and both groups share."""
PIN: Final = (
    'total = tl.inline_asm_elementwise("{ .reg .pred p; setp.lt.f32 p, $1, 0f00000000; @p pmevent 1; '
    'mov.f32 $0, $1; }", "=f,f", [total], tl.float32, is_pure=False, pack=1)'
)
"""Sums of powers are never below 0. An event that depends on that, and so never is, is what ptxas moves no wait over:
it would wait for the products of values first and find the powers then, which is to be done meanwhile."""
TEXT: Final = """\
@triton.jit
def copy_step(map, row, column, full, empty, ring, at):
    slot = at % {stages}
    hopper.mbarrier.wait(empty.index(slot), (at // {stages} & 1) ^ 1)
    hopper.mbarrier.expect(full.index(slot), {step_bytes})
    hopper.tma.async_load(map, [row, column], full.index(slot), ring.index(slot))

@triton.jit
def copy_steps(q_map, k_map, v_map, {copied}):
    {wait}
    at = 0
    turn = 1
    for number in range(tl.program_id(0), {units}, {programs}):
        for half in range(0, {halves}):
{place}
{bounds}
            for group in tl.static_range({groups}):
                hopper.mbarrier.wait(q_empty.index(group), turn)
                hopper.mbarrier.expect(q_full.index(group), {q_bytes})
                room = q_room.index(group)
                hopper.tma.async_load(q_map, [{q_row} + group * {rows}, {q_column}], q_full.index(group), room)
            turn ^= 1
            start = last * {keys}
            copy_step(k_map, {k_row}, {k_column}, k_full, k_empty, k_ring, at)
            for step in range(1, steps):
                start = (last - step) * {keys}
                copy_step(k_map, {k_row}, {k_column}, k_full, k_empty, k_ring, at + step)
                start += {keys}
                copy_step(v_map, {v_row}, {v_column}, v_full, v_empty, v_ring, at + step - 1)
            at += steps
            start = (last - steps + 1) * {keys}
            copy_step(v_map, {v_row}, {v_column}, v_full, v_empty, v_ring, at - 1)

@triton.jit
def find_powers(PLAIN: tl.constexpr, scores, start, most, total, {given}):
    layout: tl.constexpr = {scores_layout}
    if PLAIN:
        changed = scores
    else:
{changes}
    higher = tl.maximum(most, tl.max(changed, 1))
    safe = tl.where(higher == float("-inf"), tl.zeros_like(higher), higher)
    shift = {shift}
    powers = {powers}
    kept = {kept}
    return powers, kept, higher, total * kept + tl.sum(powers, 1)

@triton.jit
def attend(OWN: tl.constexpr, {pointers}, {copied}, turns):
    layout: tl.constexpr = {scores_layout}
    summed: tl.constexpr = {sums_layout}
    {wait}
    at = 0
    turn = 0
    swap = 1 - OWN
    for number in range(tl.program_id(0), {units}, {programs}):
        for half in range(0, {halves}):
{place}
{bounds}
            first_row = down * {both} + OWN * {rows}
            queries = q_room.index(OWN)
            most = tl.full([{rows}], float("-inf"), tl.float32, tl.SliceLayout(1, layout))
            total = tl.zeros([{rows}], tl.float32, tl.SliceLayout(1, layout))
            acc = tl.zeros([{rows}, {width}], tl.float32, summed)
            none = tl.zeros([{rows}, {keys}], tl.float32, layout)
            hopper.mbarrier.wait(q_full.index(OWN), turn)
            turn ^= 1
            slot = at % {stages}
            hopper.mbarrier.wait(k_full.index(slot), at // {stages} & 1)
{own_turn}
            columns = k_ring.index(slot).permute((1, 0))
            scores = hopper.warpgroup_mma(queries, columns, none, use_acc=False, is_async=True)
            scores = hopper.warpgroup_mma_wait(0, deps=(scores,))
            hopper.mbarrier.arrive(k_empty.index(slot))
{other_turn}
            powers, kept, most, total = find_powers(0, scores, last * {keys}, most, total, {given})
            weights = tl.convert_layout(powers.to({kind}), tl.DotOperandLayout(0, summed, 2))
            for plain in tl.static_range({kinds}):
                for step in range({begins}, {ends}):
                    slot = (at + 1) % {stages}
                    hopper.mbarrier.wait(k_full.index(slot), (at + 1) // {stages} & 1)
{own_turn_inside}
                    columns = k_ring.index(slot).permute((1, 0))
                    scores = hopper.warpgroup_mma(queries, columns, none, use_acc=False, is_async=True)
                    hopper.mbarrier.arrive(v_empty.index((at + {stages} - 1) % {stages}), pred=step > 1)
                    before = at % {stages}
                    hopper.mbarrier.wait(v_full.index(before), at // {stages} & 1)
                    sums = hopper.warpgroup_mma(weights, v_ring.index(before), acc, is_async=True)
{other_turn_inside}
                    scores = hopper.warpgroup_mma_wait(1, deps=(scores,))
                    hopper.mbarrier.arrive(k_empty.index(slot))
                    powers, kept, most, total = find_powers(plain, scores, (last - step) * {keys}, most, total, {given})
{pin}
                    found = tl.convert_layout(powers.to({kind}), tl.DotOperandLayout(0, summed, 2))
                    acc, _, weights = hopper.warpgroup_mma_wait(0, deps=(sums, weights, found))
                    acc = acc * tl.convert_layout(kept, tl.SliceLayout(1, summed))[:, None]
                    at += 1
            hopper.mbarrier.arrive(q_empty.index(OWN))
            hopper.mbarrier.arrive(v_empty.index((at + {stages} - 1) % {stages}), pred=steps > 1)
            before = at % {stages}
            hopper.mbarrier.wait(v_full.index(before), at // {stages} & 1)
            sums = hopper.warpgroup_mma(weights, v_ring.index(before), acc, is_async=True)
            acc = hopper.warpgroup_mma_wait(0, deps=(sums,))
            hopper.mbarrier.arrive(v_empty.index(before))
            at += 1
            whole = tl.where(total == 0, float("nan"), 1 / total)
            whole = tl.convert_layout(whole, tl.SliceLayout(1, summed))[:, None]
{finish}

@triton.jit
def attend_first({pointers}, {copied}, turns):
    attend(0, {pointers}, {copied}, turns)

@triton.jit
def attend_second({pointers}, {copied}, turns):
    attend(1, {pointers}, {copied}, turns)

@triton.jit
def ARGOSY_ENTRY({maps}, {pointers}):
    q_room = tl.allocate_shared_memory({q_map}.dtype, [{groups}, {rows}, {width}], {q_map}.layout)
    k_ring = tl.allocate_shared_memory({k_map}.dtype, [{stages}, {keys}, {width}], {k_map}.layout)
    v_ring = tl.allocate_shared_memory({v_map}.dtype, [{stages}, {keys}, {width}], {v_map}.layout)
    q_full = tl.allocate_shared_memory(tl.int64, [{groups}, 1], hopper.mbarrier.MBarrierLayout())
    q_empty = tl.allocate_shared_memory(tl.int64, [{groups}, 1], hopper.mbarrier.MBarrierLayout())
    k_full = tl.allocate_shared_memory(tl.int64, [{stages}, 1], hopper.mbarrier.MBarrierLayout())
    k_empty = tl.allocate_shared_memory(tl.int64, [{stages}, 1], hopper.mbarrier.MBarrierLayout())
    v_full = tl.allocate_shared_memory(tl.int64, [{stages}, 1], hopper.mbarrier.MBarrierLayout())
    v_empty = tl.allocate_shared_memory(tl.int64, [{stages}, 1], hopper.mbarrier.MBarrierLayout())
    turns = tl.allocate_shared_memory(tl.int64, [{groups}, 1], hopper.mbarrier.MBarrierLayout())
    for place in tl.static_range({stages}):
        hopper.mbarrier.init(k_full.index(place), count=1)
        hopper.mbarrier.init(k_empty.index(place), count={groups})
        hopper.mbarrier.init(v_full.index(place), count=1)
        hopper.mbarrier.init(v_empty.index(place), count={groups})
    for place in tl.static_range({groups}):
        hopper.mbarrier.init(q_full.index(place), count=1)
        hopper.mbarrier.init(q_empty.index(place), count=1)
        hopper.mbarrier.init(turns.index(place), count=1)
    hopper.fence_async_shared()
    tl.warp_specialize([
        (attend_first, ({pointers}, {copied}, turns)),
        (attend_second, ({pointers}, {copied}, turns)),
        (copy_steps, ({q_map}, {k_map}, {v_map}, {copied})),
    ], [{warps}, 1], [{registers}])
"""

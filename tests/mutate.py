#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Break the engine and the planner on purpose, one place at a time: each time their tests must fail.

Usage: tests/mutate.py [--learn] [NAME-PART ...]     (make mutate)
Each mutation is an exact text of a file of tracker/ or planner/ and what replaces it; a text that no longer stands there is an
error, so this list follows the code. Speaks TAP. What is not broken is taken from the build; the tree is not touched.
data/mutate_catchers.json has the test that caught each mutation last, which is tried first (--learn writes it); the
others follow, so that the file saves time and decides nothing.
"""
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.relpath(os.environ.get("RS_BUILD") or os.path.join(TOP, "build"), TOP)  # as make knows it
WORKERS = os.cpu_count() or 1
CPU_SECONDS = 60  # a test takes a few
TESTS = ["test_engine_steady", "test_ownfd", "test_ere", "test_pattern", "test_engine_ranges",
         "test_engine_verdicts", "test_engine_cases", "test_engine_alias", "test_engine_order", "test_engine_refused", "test_engine_readers", "test_engine_places",
         "test_engine_notes", "test_arena", "test_capture", "test_capture_memory", "test_capture_order",
         "test_capture_learn", "test_capture_threads", "test_checks", "test_engine_views", "test_engine_beside", "test_engine_threads", "test_engine_reuse", "test_engine_loose",
         "test_engine_suballoc",
         "test_engine_options", "test_engine_calm", "test_engine_words", "test_engine_costs", "test_gather", "test_gather_random", "test_terms", "test_contract",
         "test_engine_where", "test_engine_stall", "test_remap", "test_mark", "test_rngpos", "test_records", "test_plan_larger", "test_plan_random",
         "test_costing", "test_costing_random", "test_serve_plan", "test_engine_random", "test_engine_faults"]

MUTATIONS = [
    ("blocks: kernels reach all of the pool", "tracker/locate.c", "if (x->whole && l->sub.given)\n\t\tadd(l,", "if (0)\n\t\tadd(l,"),
    ("blocks: of mapped memory kernels reach all", "tracker/locate.c", "if (x->whole && l->sub.given)\n\t\t\tadd_mapped", "if (0)\n\t\t\tadd_mapped"),
    ("blocks: what was given out inside of a window may be state", "tracker/callstate.h", " || r->given >= w->begin;", ";"),
    ("blocks: state's memory is state's, whoever got it since", "tracker/access.c", "return r->given >= w->begin && s->cls != RS_CLASS_PRODUCT;",
     "return 0;"),
    ("blocks: steady calls do not see who got the memory", "tracker/steady.c", " || (sub.given >= k->begin && cls != RS_CLASS_PRODUCT)", ""),
    ("blocks: a graph's kernels reach today's block", "tracker/suballoc.c", "if (!m || call->deferred)", "if (!m)"),
    ("blocks: a name does not make them state", "tracker/access.c", " && !rs_region_at(r->a, pos, &region_end)", " && (region_end = end, 1)"),
    ("blocks: they outlive their mapping", "tracker/alias.c", "\trs_suballocs_forget(e, m->base, m->bytes);\n", ""),
    ("blocks: they outlive their pool", "tracker/engine.c", "\t\trs_suballocs_forget(e, a->base, a->size);\n", ""),
    ("blocks: they outlive a pool that nobody saw go", "tracker/engine.c",
     "\trs_suballocs_forget(e, a->base, a->size);\n\trs_map_changed(e);\n\trs_alloc_drop", "\trs_map_changed(e);\n\trs_alloc_drop"),
    ("descriptors: the same number is the same file", "tracker/ownfd.c", "((at >> 32) + 1) << 32 | (uint32_t)fd", "(at >> 32) << 32 | (uint32_t)fd"),
    ("descriptors: the same inode is the same file", "tracker/ownfd.c", "(!is.born_s || !was->born_s ||", "(1 ||"),
    ("ranges: of those that cross the innermost ends", "tracker/window.c",
     "\t\t\tat = &(*at)->up;", "\t\t\tabove = 1;"),
    ("ranges: a forward that was none stays pending", "tracker/window.c", "\tif (forgotten)\n", "\tif (0)\n"),
    ("rules: another domain's count, too", "tracker/pattern.c", "return d->any || !strcmp(d->name, domain);", "return 1;"),
    ("rules: a number that is none will do", "tracker/pattern.c", "if (r->number[0] && !is_number(number))", "if (0)"),
    ("rules: a bad one takes the rest of the file with it", "tracker/pattern_file.c", "\t\t\terrors++;\n\t\t}\n\t}",
     "\t\t\treturn ++errors;\n\t\t}\n\t}"),
    ("rules: the longest way counts, not the preferred", "tracker/ere.c",
     "\t\t\ts->stack[n++].code = c->y;\n\t\t\t/* fall through */", "\t\t\ts->stack[n++].code = c->x;\n\t\t\ts->stack[n].restores = 0;\n\t\t\ts->stack[n++].code = c->y;\n\t\t\tbreak;"),
    ("rules: a group is not put back", "tracker/ere.c", "\t\t\t*slot_of(m, s->stack[n].slot) = s->stack[n].old;\n", ""),
    ("where: asked of calls that nobody names", "tracker/where.c",
     "if (!wanted || !call ||", "if (!call ||"),
    ("where: an answer that comes too late is another call's", "tracker/where.c",
     "\t\t__atomic_compare_exchange_n(&e->where.ring[(entry - 1) % RS_WHERE_RING], &mine,\n"
     "\t\t\t\t\t    mine | place, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED);",
     "\t\te->where.ring[(entry - 1) % RS_WHERE_RING] = mine | place;"),
    ("contracts: what a replay's end takes away contradicts them", "tracker/preserve.c",
     "for (s = writer->call ? e->pending : NULL; s; s = s->next)", "for (s = e->pending; s; s = s->next)"),
    ("contracts: no write contradicts them", "tracker/preserve.c",
     "for (s = writer->call ? e->pending : NULL; s; s = s->next)", "for (s = NULL; s; s = s->next)"),
    ("where: not asked of calls that overwrite", "tracker/preserve.c",
     "if (k && writer->call && k->killer.call == writer->call)", "if (0)"),
    ("where: of a forward's culprits nothing is known", "tracker/window.c",
     "\t\trs_where_pass_on(&r->causes, &w->seg->causes);\n", ""),
    ("captures: bytes are put back on the replay's stream", "tracker/capture_window.c",
     "\tif (w->last_q && c->seats)\n", "\tif (0)\n"),
    ("captures: any forward of that name is a replay's own", "tracker/capture_window.c", "s->twin == w->seg->since", "1"),
    ("captures: a replay of which some has run is vouched for", "tracker/capture_window.c",
     "\tif (m->outer->mixed || m->outer->queues)\n", "\tif (0)\n"),
    ("captures: a step ends nothing in them", "tracker/capture.c", "\t\tretire(c->inner);\n\t\tc->inner->step", "\t\tc->inner->step"),
    ("captures: what is open at their end stays", "tracker/capture.c", "\twhile (c->mirrors.n) {", "\twhile (0) {"),
    ("captures: a graph that was changed is vouched for", "tracker/capture_run.c",
     "\tl->flags = vouched && !c->foreign ? 0 : RS_F_CAPTURE;", "\tl->flags = c->foreign ? RS_F_CAPTURE : 0;"),
    ("captures: nodes that no call has made are fine", "tracker/capture.c",
     "known && nodes != c->nodes)\n\t\tc->foreign = 1;", "known && nodes != c->nodes)\n\t\tc->foreign = 0;"),
    ("captures: a call that could not be followed is fine", "tracker/capture_window.c", "\t\tc->foreign = 1; /* nobody follows what it does */\n", ""),
    ("captures: a thread may be at the bytes of another one's replay", "tracker/views.c",
     "must_wait(c, t) || (c->e->config.mode != RS_MODE_AUDIT && is_in_the_way(c, t))", "must_wait(c, t)"),
    ("captures: what a replay has read may be overwritten beside it", "tracker/views.c", "\t\t\t    has_seen(w, &c->range[i]))", "\t\t\t    0)"),
    ("captures: a call that may do anything is in nobody's way", "tracker/views.c",
     "\t\tif (c->call->everything)\n\t\t\treturn 1;\n\t\tfor (i = 0; i < w->holds.n", "\t\tfor (i = 0; i < w->holds.n"),
    ("captures: all threads are in a replay's way", "tracker/views.c", "if (touches(c, &w->holds.v[i]) && comes_back(", "if (comes_back("),
    ("captures: nobody is in anybody's call", "tracker/views.c", "if (must_wait(c, t) || (c->e->config", "if ((c->e->config"),
    ("captures: a call from before a replay is not under way", "tracker/views.c", "(!c->e->replays && !c->e->outer)", "!c->e->replays"),
    ("captures: a call is under way for ever", "tracker/capture.c", "if (seat && seat->under_way.n)", "if (0)"),
    ("captures: launches on other streams do not wait for the results", "tracker/capture_run.c",
     "\tfailed = !l->event || ops->event_wait(", "\tfailed = 0 && ops->event_wait("),
    ("captures: all launches are judged by the last one's digests", "tracker/capture_run.c",
     "\tfor (i = 0; results && i < c->digests.n; i++)\n\t\tc->digests.v[i]->w = (uint64_t *)(uintptr_t)results->move[i].dst;", ""),
    ("captures: their memory goes before their launches", "tracker/capture_run.c",
     "\tl->capture = c;\n\tc->refs++;", "\tl->capture = c;\n\tc->refs += 0;"),
    ("captures: what they hold is no part of the limit", "tracker/arena.c",
     "\tstruct rs_engine *e = inner->outer ? inner->outer : inner;\n\tint over;", "\tstruct rs_engine *e = inner;\n\tint over;"),
    ("captures: a graph in another one is a match", "tracker/capture_run.c",
     "\tjudge(c, NULL, c->outer->step, RS_F_CAPTURE);", "\tjudge(c, NULL, c->outer->step, 0);"),
    ("plan: one that took more than was promised stays", "tracker/planned.c",
     "else if (r->status.measured > r->status.predicted)", "else if (0)"),
    ("plan: one for other segments is obeyed", "tracker/planned.c",
     "if (r->forwards != r->current->head.n || r->print != r->current->head.fingerprint)", "if (0)"),
    ("plan: taken before its step", "tracker/planned.c",
     "r->waiting->head.from_step <= e->step", "1"),
    ("plan: the arena has no limit", "tracker/arena.c",
     "(e->is_planned && e->block_bytes + bytes > e->planned_most)", "0"),
    ("plan: kept segments are preserved, too", "tracker/access.c", "\t\tif (!w->seg->kept)\n", ""),
    ("plan: the replay of a kept segment counts", "tracker/window.c",
     "s->kept ? RS_F_KEPT : s->spent", "s->spent"),
    ("plan: bytes given back while another replay is open", "tracker/window.c",
     "\t\tif (other != w && other->seg == s)\n\t\t\treturn 0;", "\t\tif (0)\n\t\t\treturn 0;"),
    ("plan: what a last replay overwrites itself is kept", "tracker/preserve.c",
     "if (s != e->ending && segment_claims(", "if (segment_claims("),
    ("plan: every replay counts as the last", "tracker/window.c",
     "\treturn s->planned && rs_costs_replays(s) && s->replays >= rs_costs_replays(s);", "\treturn 1;"),
    ("costs: steps with kept activations are measured", "tracker/costs.c",
     "if (!c->partial && !c->retained && now->forward) {", "if (!c->partial && now->forward) {"),
    ("costs: an optimizer's write counts", "tracker/costs.c",
     "for (i = 0; i < RS_COST_KEPT && i < s->replays; i++) {", "for (i = 0; i < RS_COST_KEPT; i++) {"),
    ("costs: a window's time with the tool's own operations", "tracker/lanes.c",
     "without(&v[0], t->inner_ns);", ""),
    ("costs: the tool's own operations on another queue", "tracker/lanes.c",
     "without(&v[n], t->lane[i].inner_ns);", ""),
    ("costs: a window's time on its first queue only", "tracker/access.c",
     "rs_lanes_begin(c->e, c->l, w, c->q);", "(void)0;"),
    ("costs: gaps between queues count", "tracker/lanes.c",
     "from = v[i].from > until ? v[i].from : until;", "from = i ? until : v[i].from;"),
    ("restore to P2 left out", "tracker/restore.c",
     "\top = rs_oplist_add(l, RS_OP_RESTORE, q);\n\tif (!op) {\n\t\tw->rec->flags |= RS_F_LOST;\n\t\treturn;\n\t}",
     "\top = NULL;\n\tif (!op)\n\t\treturn;"),
    ("P0 not shown to the replay", "tracker/restore.c",
     "\top = p2 ? rs_oplist_add(l, RS_OP_RESTORE, q) : NULL;", "\top = NULL;"),
    ("any keep of the allocation will do, whatever its version", "tracker/preserve.c",
     "struct rs_keep *k = rs_keep_find(a, piece->off, piece->ver);", "struct rs_keep *k = a->keeps.n ? a->keeps.v[0] : NULL;"),
    ("invocations not told apart", "tracker/window.c",
     "if (s->name == name && (int64_t)s->invocation == invocation)", "if (s->name == name)"),
    ("pre-image without the writes of other streams before the restore", "tracker/restore.c",
     "\trs_oplist_order(l, rs_touched(e, a), q);\n\tk->pins++;", "\tk->pins++;"),
    ("a call beside a replay finds what that is shown", "tracker/views.c", "\t\tothers_step_aside(c, t);\n", "\t\t;\n"),
    ("what is overwritten beside a replay that has read it is not kept for it", "tracker/views.c",
     "\t\t\tkeep_what_is_written(c, w);\n", "\t\t\t;\n"),
    ("what another thread has planned is not waited for", "tracker/views.c",
     "if (r->a->planned || (under_way(", "if ((under_way("),
    ("a replay's own bytes do not come back to it", "tracker/access.c", "\tif (w->away)\n\t\trs_view_returns(c, w);\n", ""),
    ("later accesses do not wait for the put-back", "tracker/callstate.h",
     "\treturn fence && fence - 1 != q &&", "\treturn 0 && fence - 1 != q &&"),
    ("put-back not ordered after the replay's other streams", "tracker/restore.c",
     "\trs_oplist_order(l, rs_touched(e, a), q);\n\trs_write_piecewise(e, l, q, a, h->off, h->len, &self);",
     "\trs_write_piecewise(e, l, q, a, h->off, h->len, &self);"),
    ("reuse: a product where the replay has read state is taken back", "tracker/access.c",
     "if (s->cls != RS_CLASS_STATE || rs_pair_made_product(c, w, r))", "if (s->cls != RS_CLASS_STATE)"),
    ("reuse: state that was set up within the forward counts as handed out again", "tracker/pairing.c",
     "\t       &s->accesses.v[t->spans.v[i].place] == la;", "\t       1;"),
    ("reuse: such a product is not compared", "tracker/pairing.c",
     "if (w->kind == RS_WINDOW_FORWARD && cls != RS_CLASS_PRODUCT", "if (cls != RS_CLASS_PRODUCT"),
    ("reuse: a finding forgets the name that its state had", "tracker/compare.c",
     "\tif (!region && off - c->region.off < c->region.len)", "\tif (0)"),
    ("views: what another replay is shown counts as seen", "tracker/views.c",
     "held || is_anothers(c->e, w, a, at, &until)", "held"),
    ("views: what an outer replay is shown counts as another's", "tracker/views.c", "o != w && !encloses(o, w) && i < o", "o != w && i < o"),
    ("views: what an inner replay has does not leave first", "tracker/views.c",
     "\t\tvacate(c, v, h->alloc, h->off, h->len);\n", ""),
    ("views: what an inner replay has seen in the outer one is not kept", "tracker/views.c",
     "\t\tkeep_all_seen(c, v, h->alloc, h->off, h->off + h->len);\n", ""),
    ("views: after a step of another thread a replay's writes are none", "tracker/access.c", "(e->pending || e->replays)", "e->pending"),
    ("views: a segment goes while its replay is open", "tracker/window.c", "\t\tif (w->name == name)\n\t\t\treturn;\n", "\t\t;\n"),
    ("a replay more than was expected writes to state for good", "tracker/access.c", "i = 0; s->spent && i <", "i = 0; 0 && i <"),
    ("a put-back that fails concerns only its own replay", "tracker/oplist.c",
     "\t\tw->rec->flags |= has_been_at(w->touches, op) ? RS_F_LOST : 0u;", "\t\t;"),
    ("views: after a step of another thread state is the replay's own", "tracker/access.c", "!w->seg || w->seg->retired ||", "!w->seg ||"),
    ("views: a replay comes back over what another one is shown", "tracker/views.c",
     "\t\t\tvacate(c, o, h.alloc, h.off, h.len);\n", "\t\t\t;\n"),
    ("views: a hold that has changed nothing comes back over a write", "tracker/views.c",
     "if (comes_back(h) && !is_shown(h)) {", "if (0) {"),
    ("views: calls on other memory move a replay's", "tracker/views.c", "if (r->a == h->alloc && r->off <", "if (r->off <"),
    ("views: what is not put back is put aside", "tracker/views.c", "h->how != RS_HOLD_COMPARE && ", ""),
    ("views: a thread waits for itself", "tracker/views.c", "\t\tn -= t->under_way.v[i] == a || !t->under_way.v[i];\n", "\t\t;\n"),
    ("views: a call that is described, but not made, is not waited for", "tracker/views.c",
     " || (under_way(c->e, r->a, t) && changes_views(c, t, r))", ""),
    ("views: it is waited for even where nothing changes", "tracker/views.c",
     "under_way(c->e, r->a, t) && changes_views(c, t, r)", "under_way(c->e, r->a, t)"),
    ("views: a call that may do anything waits for nothing", "tracker/views.c",
     "\treturn c->call->everything && (needed_is_planned(c->e) || moves_under_way(c, t));", "\treturn 0;"),
    ("views: a call that may do anything moves what others are at", "tracker/views.c", " || moves_under_way(c, t)", ""),
    ("views: a call that may do anything is not waited for", "tracker/views.c",
     "counted = !c->call->everything || is_under_way(c->e, t, NULL);", "counted = 1;"),
    ("views: a replay ends while its memory is being moved", "tracker/views.c", "if (e->outer || i == w->holds.n)", "if (1)"),
    ("views: what was waited for in vain is vouched for", "tracker/views.c",
     "\tfor (w = e->replays; w; w = w->next_replay)\n\t\tw->rec->flags |= RS_F_LOST;", ""),
    ("views: a replay waits for a stream that waits for it", "tracker/views.c",
     "if (__atomic_load_n(&e->stalling, __ATOMIC_RELAXED) & RS_QBIT(c->q)) {", "if (0) {"),
    ("views: what was exchanged is copied all the same", "tracker/views.c", "if (whole && rs_swap_aside(", "if (0 && rs_swap_aside("),
    ("views: the program's bytes come while a replay's stream reads", "tracker/views.c",
     "\trs_oplist_order(c->l, rs_touched(e, h->alloc), c->q);\n\tkeep_aside", "\tkeep_aside"),
    ("views: later calls do not wait for the program's bytes", "tracker/views.c",
     "\trs_fence(e, h->alloc, c->q, w->rec);\n}\n\n/* The replay has found", "}\n\n/* The replay has found"),
    ("views: a replay's bytes come back while others read", "tracker/views.c",
     "\t\trs_oplist_order(c->l, rs_touched(c->e, h.alloc), c->q);\n", ""),
    ("views: a replay's other streams do not wait for its bytes", "tracker/views.c",
     "\trs_fence(c->e, h.alloc, c->q, w->rec);\n\tlet_go", "\tlet_go"),
    ("views: all that is away comes back at once", "tracker/views.c",
     "if (h->away && touches(c, h) && ", "if (h->away && "),
    ("views: what was waited for in vain is put back over the program's write", "tracker/views.h",
     "return a->vain && a->vain == call->call;", "return 0;"),
    ("views: who waits for a remapping is shown what a replay was shown meanwhile", "tracker/views.c",
     " || rs_remap_meets_closed(c)) && tries", ") && tries"),
    ("views: memory that is gone is kept for who has read it", "tracker/views.c", "if (a->dead || rs_alloc_is_volatile(a))",
     "if (rs_alloc_is_volatile(a))"),
    ("views: what the host may change is put back beside it", "tracker/views.c", "if (a->dead || rs_alloc_is_volatile(a))",
     "if (a->dead)"),
    ("views: who reads overwrites", "tracker/views.c", "if (rs_access_of(c, &c->range[i])->dir & RS_WRITE)", "if (1)"),
    ("views: a call that may do anything overwrites nothing", "tracker/views.c",
     "for (t = c->call->everything ? w->touches : NULL;", "for (t = NULL;"),
    ("restore: of bytes that are held a part cannot leave", "tracker/restore.c",
     "\t} else if (h->off < off) {\n\t\th->end = off;", "\t} else if (0) {"),
    ("restore: what is put in place is not verified", "tracker/restore.c", "\tif (!then)\n\t\treturn;\n\tc = rs_check_add(w->rec, RS_CHECK_RESTORE",
     "\treturn;\n\tc = rs_check_add(w->rec, RS_CHECK_RESTORE"),
    ("restore: a snapshot that somebody else is about to use changes places", "tracker/restore.c", "!k->holds && !k->pins && ", ""),
    ("captures: what a graph frees is not kept for who has read it", "tracker/capture_memory.c",
     "\trs_memory_leaves(inner, s->alloc, &who);\n", ""),
    ("captures: what a graph was to allocate stays when it goes", "tracker/capture_memory.c", "\t\tif (a && at == i - 1)\n", "\t\tif (0)\n"),
    ("captures: what a graph has freed is still there", "tracker/capture_memory.c", "\tif (promised_at(c, a->base, &i))\n", "\tif (0)\n"),
    ("captures: names of state are not known in them", "tracker/capture_memory.c", " && !copy_regions(a, from))", ")"),
    ("captures: a mapping has no address in them", "tracker/capture_memory.c", "if (!copy_mappings(a, from) && ", "if ("),
    ("captures: results are written over before they are judged", "tracker/capture_run.c",
     "\tif (r)\n\t\tc->spare = r->next;\n", ""),
    ("captures: a launch is judged before it has ended", "tracker/capture_run.c", "\t\tif (!done || l->pins) {", "\t\tif (0) {"),
    ("marks: a number that is too large is another one", "tracker/mark.c", " || n > (uint64_t)INT64_MAX / 10 - 1)", ")"),
    ("marks: a name ends at its first #", "tracker/mark.c", "strrchr(name, '#')", "strchr(name, '#')"),
    ("marks: a segment without a name", "tracker/mark.c", "\tif (!len)\n", "\tif (0)\n"),
    ("generators: draws in another order lead to the same place", "tracker/rngpos.c",
     "\tp->past = mix(mix(p->past, p->cost), p->turns);\n", "\tp->past += p->cost * p->turns;\n"),
    ("generators: there is a law for Poisson", "tracker/rngpos.c", "\tif (draw == RS_RNGPOS_POISSON)\n\t\treturn 0;\n", ""),
    ("generators: a seed is no restart", "tracker/rngpos.c", "\trestart(p, EVENT_SEED, p->seed);\n", ""),
    ("records: a line that was cut takes the next one with it", "tracker/records.c", "\tif (atomic_load(&r->torn[file])) {", "\tif (0) {"),
    ("records: what is not written is not counted", "tracker/records.c", "\t\tatomic_fetch_add(&r->lost, 1);\n", ""),
    ("records: a value that has no room is half a line", "tracker/records.c",
     "if (j->skipped || j->len + len + RESERVE > sizeof(j->text)) {", "if (j->skipped || j->len + len > sizeof(j->text)) {"),
    ("budget: a plan may take more than its segment has", "planner/plan_check.c", "\t\tif (live > p->cap[i]) {", "\t\tif (0) {"),
    ("budget: what a segment needs while it runs does not count", "planner/plan_check.c", "live = cost.turn + a->w;", "live = cost.turn;"),
    ("budget: nothing is left alone for what was not measured", "planner/costing_problem.c", " - (int64_t)rs_wish_guard(wish)", ""),
    ("budget: what the program has in use itself does not count", "planner/costing_problem.c", " - (int64_t)e.base;", ";"),
    ("budget: what is in use outside of segments does not count", "planner/costing_plan.c",
     "if (!r && c->usage.outside_bytes > m.limit)", "if (0)"),
    ("budget: a plan that took too much comes again", "planner/serve_plan.c",
     "\t\tc->extra += over + c->made.budget / 128;", "\t\tc->extra += 0;"),
    ("budget: plans that are refused come for ever", "planner/serve_plan.c",
     "if (c->refusals > RS_SERVE_REFUSALS || ", "if ("),
    ("budget: ranks are planned for the largest of their budgets", "planner/serve_plan.c",
     "g->budget = c->budget < g->budget ? c->budget : g->budget;", "g->budget = c->budget;"),
    ("snapshot block reused before its readers are done", "tracker/arena.c",
     "\tif (rs_order_now(e, users, q)) {", "\tif (0) {"),
    ("two blocks of the arena overlap", "tracker/arena.c",
     "\trest->addr = b->addr + bytes;", "\trest->addr = b->addr + bytes - UNIT;"),
    ("a keep is dropped while a segment still claims it", "tracker/preserve.c",
     "\t       rs_claimed(e, a, k->off, k->len, k->ver);", "\t       0;"),
    ("claims are not looked at before a write", "tracker/preserve.c",
     "\t\tif (!x->claimed)\n\t\t\tcontinue;", "\t\tcontinue;"),
    ("a write does not change the version", "tracker/preserve.c",
     "\tif (rs_extmap_set(&a->ext, off, len, rs_version_next(e), 0))",
     "\tif (rs_extmap_set(&a->ext, off, len, e->version, 0))"),
    ("digests are not compared", "tracker/compare.c",
     "\t\tif (c->a->w[i] != c->b->w[i])", "\t\tif (0)"),
    ("unknown counts as equal", "tracker/compare.c",
     "\tif (with > *v)", "\tif (with == V_DIFFERENT)"),
    ("windows are visited innermost first", "tracker/access.c",
     "\tin_windows(c, rs_window_outer(w));\n\tin_window(c, w);", "\tin_window(c, w);\n\tin_windows(c, rs_window_outer(w));"),
    ("a step does not close open replays", "tracker/window.c",
     "\tabort_windows(e, &t->top);\n\tabort_windows(e, &e->process);", ""),
    ("state and product are decided per allocation", "tracker/locate.c",
     "\t\tadd(l, a, off, rs_min64(x->bytes, a->size - off));", "\t\tadd(l, a, 0, a->size);"),
    ("a second address is other memory", "tracker/locate.c",
     "\t\t\tadd_backing(l, m->alloc, m->off + (from - base), to - from);",
     "\t\t\tadd_backing(l, m->alloc, from - base, to - from);"),
    ("an access ends with its first mapping", "tracker/locate.c",
     "\t\tat = base + bytes;\n\t}\n}", "\t\tbreak;\n\t}\n\t(void)at;\n}"),
    ("a write through a multicast object reaches one memory", "tracker/locate.c",
     "\tfor (i = 0; i < a->binds.n; i++) {", "\tfor (i = 0; i < 1 && i < a->binds.n; i++) {"),
    ("restores go to another mapping's bytes", "tracker/alias.c",
     "\t\t\treturn m->base + (off - m->off);", "\t\t\treturn m->base;"),
    ("old bytes are put over the new owner of an address", "tracker/pairing.c",
     "\tif (!la || (la->serial == a->serial && la->off < off + len && off < la->off + la->len))\n\t\treturn 0;", "\treturn 0;"),
    ("a pool is one tensor: any place of the same allocation will do", "tracker/pairing.c",
     "\tif (!la || (la->serial == a->serial && la->off < off + len && off < la->off + la->len))",
     "\tif (!la || la->serial == a->serial)"),
    ("restores P0 although P2 could not be held", "tracker/oplist.c",
     "\tif (op->guard && __atomic_load_n(&op->guard->state, __ATOMIC_ACQUIRE) != RS_KEEP_READY)",
     "\tif (0)"),
    ("what only the replay reads is taken for unchanged", "tracker/restore.c",
     "\t\t\treturn 0; /* not read before either, else it would be judged as that */", "\t\t\tcontinue;"),
    ("a kept product is not compared with what was kept", "tracker/pairing.c",
     "\t    !made->digest || made->late)\n\t\treturn 0;", "\t    !made->digest || made->late)\n\t\treturn 0;\n\treturn 1;"),
    ("an older version put back is taken for unchanged", "tracker/restore.c",
     "x->ver <= s->since && x->placed <= s->since", "x->ver <= s->since"),
    ("a write without a lock leaves no trace", "tracker/restore.c",
     "\t    __atomic_load_n(&a->loose, __ATOMIC_RELAXED) > s->since)", "\t    0)"),
    ("state that only the replay touches is undone", "tracker/access.c",
     "return rs_region_at(a, s->off, &until) ? RS_HOLD_BOTH : RS_HOLD_COMPARE;", "return RS_HOLD_RESTORE;"),
    ("an unknown writer's products count as equal", "tracker/compare.c",
     "{RS_F_UNKNOWN_WRITER, RS_FINDING_UNKNOWN_WRITER, V_UNKNOWN, V_UNKNOWN, V_UNKNOWN}",
     "{RS_F_UNKNOWN_WRITER, RS_FINDING_UNKNOWN_WRITER, V_UNKNOWN, V_EQUAL, V_UNKNOWN}"),
    ("an unknown writer changes nothing", "tracker/access.c",
     "\t\t\teverything_of(c, t->alloc);", "\t\t\t;"),
    ("a put-back takes more than was held", "tracker/restore.c",
     "\t\th->off = piece.off;\n\t\th->len = piece.len;", "\t\th->off = k->off;\n\t\th->len = k->len;"),
    ("remapping does not wait for the device", "tracker/remap.c",
     "\t\terr = rs_remap_wait(e, mask, force);", "\t\terr = 0;"),
    ("remapping does not mind calls of other threads on their way", "tracker/remap.c",
     "\treturn __atomic_load_n(&flying, __ATOMIC_RELAXED) > own_flying;", "\treturn 0;"),
    ("the bytes do not change places when a remapping is settled", "tracker/remap.c",
     "\t\terr = exchange_contents(e, r, addr);", "\t\terr = 0;"),
    ("what is held is held again", "tracker/restore.c", "\t*ret_held = h->off <= off;\n", ""),
    ("of what is partly held the rest is not held", "tracker/restore.c", "*ret_held ? h->end : h->off", "*ret_held ? end : h->off"),
    ("what is held of another buffer counts", "tracker/restore.c",
     "\tif (i == w->held.n || h->serial != a->serial)", "\tif (i == w->held.n)"),
    ("what was compared is compared again", "tracker/compare.c", "\t\treturn *slot_of(r, (uint8_t)kind, a, off) != 0;", "\t\treturn 0;"),
    ("swapped bytes do not come back", "tracker/restore.c",
     "\tif (k->other_ver && h->off == k->off", "\tif (0 && h->off == k->off"),
    ("a page that was overwritten again is taken for unchanged", "tracker/thin.c",
     "\t\tif (a->ext.ext[i].ver != t->after_ver)\n\t\t\treturn 0;", "\t\t;"),
    ("a page that somebody needs as it is gets its old version", "tracker/thin.c",
     "\treturn !rs_claimed(e, a, off, len, t->after_ver) &&", "\treturn 1 &&"),
    ("a wait orders nothing", "tracker/order.c",
     "\t\tjoin(e, c, ev ? &ev->clock : &e->everything_known);", "\t\t(void)ev;"),
    ("every stream is ordered after every other", "tracker/order.c",
     "\treturn !c || c->t[from] >= tick;", "\treturn 1;"),
    ("only the first reader of a claim is remembered", "tracker/access.c", "\t\trs_readers_note(c, w, &c->range[i]);\n", ""),
    ("a later reader stands for all others", "tracker/readers.c",
     "x->end <= now->end && rs_order_known(e, x->q, x->tick, now->q);", "x->end <= now->end;"),
    ("who has read a part stands for who has read all", "tracker/readers.c",
     "\treturn now->off <= x->off && x->end <= now->end &&", "\treturn"),
    ("who has read a part has read all", "tracker/readers.c",
     "if (x->off < off + len && off < x->end && !rs_order_known(", "if (!rs_order_known("),
    ("a set of readers is that of the call's last claim", "tracker/readers.c",
     "if (l.n && !is_set(*shared, &l)) {", "if (l.n && !*shared) {"),
    ("a race behind the replay's end is nobody's", "tracker/readers.c", "r->seg == s ? rs_check_add(", "0 ? rs_check_add("),
    ("nothing is told of a forward that nobody replays", "tracker/window.c", "\trs_segment_tell(e, s);\n", ""),
    ("what a replay was told is told again", "tracker/compare.c", "i < 2 && !s->replays && !s->told", "i < 2 && !s->told"),
    ("an open replay's fence ends with another one's", "tracker/preserve.c",
     "\t\tif (rec->fenced & 1ull << i && !--e->fences[i])", "\t\tif (rec->fenced & 1ull << i)"),
    ("a fence stays for ever", "tracker/preserve.c",
     "\t\t__atomic_fetch_and(&e->fence_queues, ~over, __ATOMIC_RELAXED);", "\t\t;"),
    ("a device that does not answer has come past everything", "tracker/compare.c",
     "\tr->flags |= RS_F_INTERNAL;\n\tr->covered = 0;", "\tr->flags |= RS_F_INTERNAL;"),
    ("a keep from before nobody claimed anything has the bytes of its version", "tracker/preserve.c",
     "\t\t\tk->ver = rs_version_next(e);", "\t\t\t;"),
    ("a claim leaves what was found before as it was", "tracker/access.c",
     "\t\t\t__atomic_store_n(&a->claimed, c->e->claim_epoch, __ATOMIC_RELAXED);\n\t\t\trs_moment_next(c->e);",
     "\t\t\t__atomic_store_n(&a->claimed, c->e->claim_epoch, __ATOMIC_RELAXED);"),
    ("a fence leaves what was found before as it was", "tracker/preserve.c",
     "\t__atomic_store_n(&a->touched, RS_QBIT(q), __ATOMIC_RELAXED);\n\trs_moment_next(e);",
     "\t__atomic_store_n(&a->touched, RS_QBIT(q), __ATOMIC_RELAXED);"),
    ("other memory at an address leaves what was found before as it was", "tracker/model.h",
     "\t__atomic_fetch_add(&e->map_generation, 1, __ATOMIC_RELEASE);\n\trs_moment_next(e);",
     "\t__atomic_fetch_add(&e->map_generation, 1, __ATOMIC_RELEASE);"),
    ("another stream of the same handle is the old one", "tracker/model.h",
     "\t__atomic_fetch_add(&e->generation, 1, __ATOMIC_RELAXED);\n\trs_moment_next(e);",
     "\t__atomic_fetch_add(&e->generation, 1, __ATOMIC_RELAXED);"),
    ("a stall leaves what was found before as it was", "tracker/engine.c",
     "\t__atomic_fetch_or(&e->stalling, RS_QBIT(id), __ATOMIC_RELAXED);\n\trs_moment_next(e);",
     "\t__atomic_fetch_or(&e->stalling, RS_QBIT(id), __ATOMIC_RELAXED);"),
    ("a window leaves what was found before as it was", "tracker/window.c",
     "\tif (w->kind != RS_WINDOW_OTHER)\n\t\trs_moment_next(e);", ""),
    ("a call that waits for its end is like one that does not", "tracker/calm.c",
     "\tif (!call->synchronous)\n\t\tcall->calm = moment;", "\tcall->calm = moment;"),
    ("a broken contract is no finding", "tracker/compare.c",
     "\tcase RS_CHECK_BROKEN:\n\t\tworse(&o->entry, V_UNKNOWN);", "\tcase RS_CHECK_BROKEN:\n\t\tbreak;"),
    ("of replays at once the one that began first has the true P2", "tracker/restore.c", "o->at > h->at &&", "1 &&"),
    ("restores come before the keeps of what they overwrite", "tracker/gather.c",
     "\tcopies(g, 0);", "\tcopies(g, 1);"),
    ("copies go together although their order matters", "tracker/gather.c",
     "\twhile (g.n >= FEWEST && conflict(&g, g.n))", "\twhile (0)"),
    ("a digest between two restores of its bytes sees the later one", "tracker/gather.c",
     "(after || op->kind == RS_OP_KEEP)", "(op->kind == RS_OP_KEEP)"),
    ("digests of bytes that are restored later see them restored", "tracker/gather.c",
     "\t\tg->early[i] = (uint8_t)after;", "\t\tg->early[i] = 0;"),
    ("digests that failed together are taken for made", "tracker/gather.c",
     "\tfor (i = 0; i < g->nof; i++)\n\t\tdigest_alone", "\tfor (i = 0; i < 0; i++)\n\t\tdigest_alone"),
    ("keeps without a digest are kept in an audit", "tracker/gather.c",
     "op->failed = rs_op_digest_keep(g->e, op) != 0;", "rs_op_digest_keep(g->e, op);"),
    ("result words are written while another queue still may", "tracker/memory.c",
     "\tunordered = rs_order_now(e, users, q);", "\tunordered = 0;"),
    ("a move that was made in part is left at that", "tracker/gather.c",
     "\tfor (i = 0; i < g->nof; i++)\n\t\tcopy_alone", "\tfor (i = 0; i < 0; i++)\n\t\tcopy_alone"),
    ("rows whose copy failed count as kept", "tracker/gather.c", "g->op[i].failed ? -EIO : 0", "0"),
    ("kept bytes lie anywhere", "tracker/oplist.c", "\tuint64_t phase = op->addr % 16;", "\tuint64_t phase = 0;"),
    ("a keep is looked for among those that begin there", "tracker/preserve.c",
     "\t\tif (off - k->off >= a->longest_keep)", "\t\tif (off != k->off)"),
    ("the contract's windows are ignored", "tracker/contract.c",
     "\t\treturn rs_jdoc_each(d, \"windows\", one_window, NULL);", "\t\treturn rs_jdoc_skip(d);"),
    ("the contract's way of restoring is ignored", "tracker/contract.c",
     "RS_RESTORES,\n\t\t\t\t\t   &policy->restore);", "RS_RESTORES, &(uint8_t){0});"),
    ("every segment gets the terms of the first", "tracker/contract.c", "&c->terms[s->first_term + i]", "&c->terms[i]"),
    ("every segment gets the calls of the first", "tracker/contract.c", "c->calls[s->first_call + i]", "c->calls[i]"),
    ("names that are no UTF-8 stay as they are", "tracker/name.c", "\tif (n) {\n", "\tif (n || (n = 1)) {\n"),
    ("a newer contract is read", "tracker/contract.c", "if (!err && v > RS_CONTRACT_VERSION)", "if (0)"),
    ("a contract's calls are not told", "tracker/contract.c", "!s->incomplete && i < s->ncalls", "0 && i < s->ncalls"),
    ("segments that the contract does not know are fine", "tracker/contract.c",
     "int err = rs_engine_expect_none(e);", "int err = 0;"),
    ("two segments of one name", "tracker/contract.c", "if (!strcmp(names[i], names[i - 1]))", "if (0)"),
    ("an incomplete segment is preserved as a complete one", "tracker/contract.c",
     "s->incomplete ? conservative : s->policy", "s->policy"),
    ("windows lie in no region", "tracker/contract.c", "\t\tw->region = t.region;\n", ""),
    ("what nobody could tell is taken for a product", "tracker/contract.c",
     "t.role == RS_ROLE_PRODUCT + 1 ? 0 :", "(t.role = RS_ROLE_PRODUCT, 0) ? 0 :"),
    ("the fingerprint is not read", "tracker/contract.c",
     "field ? rs_jdoc_skip(d) : rs_jdoc_text(d, \"fingerprint\", &c->fingerprint)", "rs_jdoc_skip(d)"),
    ("the way of restoring does not arrive", "tracker/terms.c", "\t\t\tt->policy = policy;",
     "\t\t\tt->policy.option = policy.option;"),
    ("windows and roles are one", "tracker/terms.c", "\tp.window = term->window;\n", ""),
    ("any argument of a call will do", "tracker/terms.c", "\t\tp.slot = term->slot;\n", ""),
    ("any piece of an argument will do", "tracker/terms.c", "\t\tp.piece = term->piece;\n", ""),
    ("of terms that overlap the last one counts", "tracker/terms.c",
     "x->term < s->found ? x->term : s->found", "x->term"),
    ("a term reaches as far back as one asks", "tracker/terms.c",
     "\t\ts->until = rs_min64(s->until, base + x->off);\n\t\treturn;", "\t\t;"),
    ("other calls fit", "tracker/terms.c", "\treturn !terms || !terms->calls.n;", "\treturn 1;"),
    ("the order of calls is no matter", "tracker/terms.c",
     "\t\th = rs_digest_mix(h * RS_DIGEST_K + s->log.v[i].ident);", "\t\th += s->log.v[i].ident;"),
    ("aliases are not verified", "tracker/window.c", "\t\t\trs_places_over(e, w->seg);\n", "\t\t\t;\n"),
    ("an alias that the contract does not know is fine", "tracker/places.c",
     "if (m->known && m->known->complete && !m->known->cut && !find(m->known, &key))", "if (0)"),
    ("aliases of which nobody said that they are all", "tracker/places.c",
     "m->known && m->known->complete && !m->known->cut && !find", "m->known && !m->known->cut && !find"),
    ("an alias that was seen once must be there always", "tracker/places.c", "\t\tif (!x->always || !is_apart(", "\t\tif (!is_apart("),
    ("memory that is shared otherwise is no reason to reject", "tracker/compare.c",
     "\tcase RS_CHECK_ALIAS:\n\t\tworse(&o->entry, V_UNKNOWN);", "\tcase RS_CHECK_ALIAS:"),
    ("places are told apart by their call alone", "tracker/places.c",
     "\treturn la->slot == p->slot && la->piece == p->piece;", "\treturn 1;"),
    ("of several places the last one is the first", "tracker/places.c", "\t\tm->place = s->place;\n", ""),
    ("products that follow one another are aliases", "tracker/places.c",
     "(s->cls != RS_CLASS_STATE && s->place < w->seg->accesses.n))", "0)"),
    ("an access without bounds proves an alias", "tracker/places.c",
     "if (!now.whole && !then.whole && is_after(", "if (is_after("),
    ("a contract's aliases are not told", "tracker/contract.c", "!err && i < s->naliases", "0 && i < s->naliases"),
    ("an alias of some forwards must be there always", "tracker/contract.c",
     "a->forwards && a->forwards >= s->forwards;", "1;"),
    ("every segment gets the aliases of the first", "tracker/contract.c", "c->aliases[s->first_alias + i]", "c->aliases[i]"),
    ("terms of other segments are nobody's", "tracker/terms.c", "t : find(e, others)", "t : NULL"),
    ("faults: a keep whose copy failed is one", "tracker/oplist.c",
     "__atomic_store_n(&k->state, err ? RS_KEEP_FAILED : RS_KEEP_READY, __ATOMIC_RELEASE);\n\treturn err;",
     "__atomic_store_n(&k->state, RS_KEEP_READY, __ATOMIC_RELEASE);\n\treturn 0;"),
    ("faults: a digest that could not be made is what it was before", "tracker/oplist.c",
     "\tif (op->failed && op->words)\n\t\top->words->failed = 1;", ""),
    ("faults: a restore that failed was made", "tracker/oplist.c",
     "\t\tlose(e, op);\n", "\t\t(void)lose;\n"),
    ("faults: what nobody waited for is vouched for", "tracker/oplist.c", "\t\tif (l->refused)\n", "\t\tif (0)\n"),
    ("faults: who did not wait once never does", "tracker/oplist.c",
     "\tif (op->failed && op->fence && a)\n", "\tif (0)\n"),
    ("faults: what a stream may not wait for is not waited for", "tracker/oplist.c",
     "\t\terr = rs_remap_wait(e, mask, 0);", "\t\t;"),
    ("faults: a pre-image of who knows what", "tracker/oplist.c", " || op->kind == RS_OP_KEEP ||", " ||"),
    ("faults: a free waits for what is over", "tracker/engine.c",
     "RS_QBIT(a->fence - 1) & e->fence_queues", "RS_QBIT(a->fence - 1)"),
    ("draws: each is the first one", "tracker/generator.c",
     "d = &w->seg->draws.v[w->draw_at++];", "d = &w->seg->draws.v[0];"),
    ("draws: the generator goes on although a replay was served", "tracker/generator.c", "\treturn served;", "\treturn 0;"),
    ("draws: what a replay is served is not recorded for forwards in it", "tracker/generator.c",
     "\tif (served)\n\t\trecord(", "\tif (0)\n\t\trecord("),
    ("steady: what is claimed is overwritten", "tracker/steady.c", " || ext->claimed))", "))"),
    ("steady: a part stands for the whole", "tracker/steady.c", "ext->len != len || ", ""),
    ("steady: what was written in part is read", "tracker/steady.c",
     "(x->dir & RS_READ && s->cls == RS_CLASS_MAYBE)", "0"),
    ("steady: races are not seen", "tracker/steady.c",
     "if (x->dir & RS_READ && k->tick && !is_ordered(", "if (0 && !is_ordered("),
    ("steady: races with the first extent only", "tracker/steady.c", "if (x->off + x->len >= end)", "if (1)"),
    ("steady: aliases are not learned", "tracker/steady.c", "\trs_places_steady(c, w);\n", ""),
    ("steady: what a call writes comes before what it reads", "tracker/places.c",
     "\tmeet_steady(c, w, 1);\n\tmeet_steady(c, w, 0);", "\tmeet_steady(c, w, 0);\n\tmeet_steady(c, w, 1);"),
    ("steady: waits for nobody", "tracker/steady.c",
     " || !(__atomic_load_n(&a->touched, __ATOMIC_RELAXED) & k->bit))", ")"),
    ("steady: readers are not noted", "tracker/steady.c", "\t\tnote_readers(c, w);\n", "\t\t;\n"),
    ("steady: a write gives no version", "tracker/steady.c", "\t\tr->ext->ver = rs_version_next(c->e);\n", ""),
    ("steady: a write leaves no moment", "tracker/steady.c", "\t\tr->ext->tick = tick;\n", ""),
    ("steady: memory that nobody knows is not told", "tracker/steady.c", "(call->untracked ? RS_F_UNTRACKED : 0u) |", "0u |"),
    ("steady: effects on the host are not told", "tracker/steady.c", "(call->host_effect ? RS_F_HOST_EFFECT : 0u)", "0u"),
    ("steady: versions of whole buffers are none", "tracker/steady.c", "!e->config.buffers && ", ""),
    ("steady: enclosing windows see nothing", "tracker/steady.c", "!rs_window_outer(w) &&", "1 &&"),
    ("steady: process-wide windows see nothing", "tracker/steady.c", "!e->process && ", ""),
    ("steady: old look-ups count", "tracker/steady.c", "call->generation == rs_engine_generation(e)", "1"),
    ("steady: a window's first call is like any other", "tracker/steady.c", "w->last_q == c->q + 1", "1"),
    ("steady: captured calls are steady", "tracker/steady.c", "!call->capturing &&", "1 &&"),
    ("steady: calls that may write anything are steady", "tracker/steady.c", "!call->everything &&", "1 &&"),
    ("post: a refused call has left a product", "tracker/follow.c",
     "\tif (!ok)\n\t\treturn 0;\n\trs_oplist_init", "\trs_oplist_init"),
    ("post: what a later call of the launch writes again", "tracker/follow.c", " && !x->late;", " && 1;"),
    ("post: ranges of another call", "tracker/locate.c", "t->ranges_call != c->number || ", ""),
    ("words: what is claimed is overwritten", "tracker/calm.c",
     "\treturn __atomic_load_n(&a->claimed, __ATOMIC_RELAXED) != k->epoch;", "\treturn 1;"),
    ("words: no marks are left", "tracker/calm.c",
     "\tif (k->unmarked)\n\t\tleave_marks(k, l->alloc, write);\n", ""),
    ("words: waits for nobody", "tracker/calm.c",
     "if (!l->alloc || !is_free(k, l->alloc, write))", "if (!l->alloc)"),
    ("lately: an answer holds for ever", "tracker/calm.c", "(l->calm | !write) == calm", "l->calm"),
    ("lately: an answer for reading holds for writing", "tracker/calm.c",
     "(l->calm | !write) == calm", "(l->calm | 1) == calm"),
    ("lately: an answer holds for any stream", "tracker/calm.c", "k->moment << 7 | (uint64_t)k->q << 1", "k->moment << 7"),
    ("lately: memory that is gone is there", "tracker/calm.c",
     " && t->lately_generation[l - t->lately] == generation ? l", " ? l"),
    ("lately: an entry is any address's", "tracker/calm.c", "\treturn addr - l->base < l->bytes;", "\treturn addr >= l->base && l->bytes;"),
    ("lately: mappings are met", "tracker/calm.c", ".alloc = rs_mapping_of(v) ? NULL : v}", ".alloc = (void *)((uintptr_t)v & ~1ull)}"),
    ("reach: any memory is that of the address", "tracker/calm.c",
     "\tif (r->lo <= 0 && r->hi > 0)\n", ""),
    ("reach: what is reached from nowhere is nothing", "tracker/calm.c", "\t\treturn r->lo == 0;", "\t\treturn 1;"),
    ("reach: no marks are left", "tracker/calm.c", "\treturn pass_all(t, k, block, r, n);", "\treturn 1;"),
    ("reach: marks of a call that does not pass", "tracker/calm.c", "is_within(l, addr, r) && is_free(k, l->alloc, r->dir & RS_WRITE);",
     "is_within(l, addr, r) && pass((struct rs_lately *)l, k, r->dir & RS_WRITE);"),
    ("reach: from NULL all is reached", "tracker/calm.c", "if (addr && !is_answered(t, k->calm | 1, addr, &r[i]) &&",
     "if (!is_answered(t, k->calm | 1, addr, &r[i]) &&"),
    ("copy: what is read is not looked at", "tracker/calm.c", "(!src || answers(small_at(t, src), k.calm | 1, src, 0))", "1"),
    ("copy: what is written is not looked at", "tracker/calm.c", "answers(small_at(t, dst), k.calm | 1, dst, 1)",
     "answers(small_at(t, dst), k.calm | 1, dst, 0)"),
    ("words: only so many are asked about as are fetched at once", "tracker/calm.c",
     "\t\tif (!ask(t, k, open, nopen))\n\t\t\treturn 0;\n", ""),
    ("words: those that are left over are not asked about", "tracker/calm.c", "return !nopen || ask(", "return 1 || ask("),
    ("words: one that is not there is passed over", "tracker/calm.c", "\t\tif (!word_of(at, scattered, &word))\n\t\t\treturn 0;\n\t\tif (needs_asking(t, calm, word))",
     "\t\tif (!word_of(at, scattered, &word))\n\t\t\tcontinue;\n\t\tif (needs_asking(t, calm, word))"),
]


FOLDERS = ("tracker", "planner")
FLAGS = ["gcc", "-std=gnu11", "-D_GNU_SOURCE", "-O1", "-w", "-fno-strict-aliasing", '-DRS_VERSION="0"']
ARGS = {"test_engine_random": ["150"], "test_engine_faults": ["150"]}
CATCHERS = os.path.join(TOP, "tests/data/mutate_catchers.json")


def build():
    """{source: object} of the code as it is."""
    env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    subprocess.run(["make", "-s", f"-j{WORKERS}", f"O={BUILD}", *(f"{BUILD}/tests/{t}.t" for t in TESTS)], cwd=TOP, env=env,
                   check=True, stdout=sys.stderr)
    names = [f"{d}/{f}" for d in FOLDERS for f in sorted(os.listdir(f"{TOP}/{d}")) if f.endswith(".c") and f != "replayctl.c"
             and not f.startswith("cmd_")]
    names += [f"tests/unit/{t}.c" for t in TESTS]
    return {name: f"{TOP}/{BUILD}/obj/{name[:-2]}.o" for name in names}


def made_of(objects, header):
    """The sources that include it, however deeply."""
    return [name for name, obj in objects.items() if header in open(obj[:-1] + "d").read().split()]


def limit_cpu():
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))


def passes(where, objects, test):
    """One test with these objects; of the library only what it needs is linked. A test that does not end fails."""
    library, exe = f"{where}/lib.a", f"{where}/{test}"
    if not os.path.exists(library):
        subprocess.run(["ar", "rcs", library, *(o for n, o in objects.items() if n.startswith(FOLDERS))], check=True)
    subprocess.run(["gcc", objects[f"tests/unit/{test}.c"], library, "-Wl,--as-needed", "-ljansson", "-lm", "-lpthread", "-o", exe], check=True)
    try:
        run = subprocess.run([exe, *ARGS.get(test, [])], capture_output=True, timeout=10 * CPU_SECONDS,
                             preexec_fn=limit_cpu)
    except subprocess.TimeoutExpired:
        return False
    return run.returncode == 0


def first_failing(where, objects, catcher=None):
    """None when every test passes, else the name of the first that fails: the one that did last time is tried first."""
    order = sorted(TESTS, key=lambda t: t != catcher)
    return next((t for t in order if not passes(where, objects, t)), None)


def mutate(base, catcher, path, old, new):
    """(the test that fails or None, what is wrong with the mutation itself)"""
    text = open(f"{TOP}/{path}").read()
    if text.count(old) != 1:
        return None, f"the text stands {text.count(old)} times in {path}"
    objects = dict(base)
    with tempfile.TemporaryDirectory() as where:
        for folder in (*FOLDERS, "tests/unit") if path.endswith(".h") else ():
            shutil.copytree(f"{TOP}/{folder}", f"{where}/{folder}")
        os.makedirs(f"{where}/{os.path.dirname(path)}", exist_ok=True)
        open(f"{where}/{path}", "w").write(text.replace(old, new))
        for name in made_of(base, path) if path.endswith(".h") else [path]:
            objects[name] = f"{where}/{name}.o"
            if subprocess.run([*FLAGS, "-I", where, "-I", TOP, "-c", f"{where}/{name}", "-o", objects[name]]).returncode:
                return None, f"{name} does not compile with it"
        return first_failing(where, objects, catcher), ""


def catchers():
    try:
        with open(CATCHERS) as f:
            return json.load(f)
    except FileNotFoundError:
        return {}


def main():
    learn = "--learn" in sys.argv[1:]
    parts = [a for a in sys.argv[1:] if a != "--learn"]
    chosen = [m for m in MUTATIONS if not parts or any(a in m[0] for a in parts)]
    known, failed = catchers(), 0
    print(f"1..{len(chosen) + 1}", flush=True)
    with tempfile.TemporaryDirectory() as top, ThreadPoolExecutor(WORKERS) as pool:
        base = build()
        broken = first_failing(top, base)
        print(f"not ok 1 - the code as it is: {broken} fails" if broken else "ok 1 - the code as it is passes", flush=True)
        failed += bool(broken)
        done = pool.map(lambda m: mutate(base, known.get(m[0]), *m[1:]), chosen)
        for n, ((name, *_), (test, wrong)) in enumerate(zip(chosen, done), 2):
            failed += not test
            print(f"{'ok' if test else 'not ok'} {n} - {name}: "
                  f"{wrong or (f'caught by {test}' if test else 'all tests pass')}", flush=True)
            known[name] = test
    if learn and not failed:
        names = {m[0] for m in MUTATIONS}
        with open(CATCHERS, "w") as f:
            json.dump({name: known[name] for name in sorted(known) if name in names}, f, indent=0)
            f.write("\n")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The detector in the kernel: it reads report traffic, runs the detection steps on it and drops it;
 * only events go to user space. Packets that the parser does not settle are escalated, with the
 * cause counted; all other traffic is the host's.
 *
 * State is per receive queue, and updated by the holder of the queue's turn (core/turn.h); scratch
 * and counters are per processor. The hops' functions are global, so that the verifier checks each
 * once.
 */
#include "bpf/detect_known.bpf.h"
#define PL_ENV_FAST
#include "core/env.h"

/* --- the environment of the steps ------------------------------------------------------------- */

struct pl_core_env {
	const struct pl_core_rules *rules;
	struct work *w;
	uint32_t queue;
};

static __always_inline const struct pl_core_rules *pl_env_rules(const struct pl_core_env *env)
{
	return env->rules;
}

static __always_inline struct pl_core_counters *pl_env_counters(struct pl_core_env *env)
{
	return &env->w->counters.core;
}

static __always_inline struct pl_core_trail *pl_env_trail(struct pl_core_env *env)
{
	return &env->w->trail;
}

#define TABLE(name, help)                                                                          \
	static __always_inline struct pl_core_##name##_set *pl_env_##name##_set(                   \
		struct pl_core_env *env, uint32_t i)                                               \
	{                                                                                          \
		uint32_t at = i + env->queue * (env->rules->mask[PL_CORE_T_##name] + 1);           \
                                                                                                   \
		return bpf_map_lookup_elem(&pl_table_##name, &at);                                 \
	}
PL_CORE_TABLES(TABLE)
#undef TABLE

static __always_inline struct pl_event *pl_env_event(struct pl_core_env *env)
{
	return bpf_ringbuf_reserve(&pl_events, sizeof(struct pl_event), env->w->events_flags);
}

static __always_inline void pl_env_tell(struct pl_core_env *env, struct pl_event *e)
{
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
}

static __always_inline const struct pl_core_known *pl_env_known(
	struct pl_core_env *env, const struct pl_core_report *r)
{
	pl_detect_known(env->w);
	return &env->w->known;
}

static __always_inline struct pl_fast_marks *pl_env_marks(struct pl_core_env *env)
{
	return &env->w->marks;
}

static __always_inline struct pl_fast_memo *pl_env_memo(struct pl_core_env *env, uint32_t i)
{
	uint32_t at = i + env->queue * PL_FAST_MEMOS;

	return bpf_map_lookup_elem(&pl_memos, &at);
}

/* Functions that the verifier checks once each. */
int pl_detect_seek_place(struct work *w, uint32_t node, uint64_t word);
int pl_detect_seek_port(struct work *w, uint32_t node, uint64_t word);
int pl_detect_seek_link(struct work *w, uint64_t stack, uint64_t before, uint32_t ports);
int pl_detect_seek_exporter(struct work *w);
int pl_detect_seek_route(struct work *w, uint64_t path_id);
int pl_detect_expect(struct work *w, struct pl_fast_memo *memo, uint32_t has);
int pl_detect_expect_links(struct work *w, struct pl_fast_memo *memo, uint32_t has);

#define PL_FAST_SEEK_CALLS
#define pl_env_seek_place(env, node, word) pl_detect_seek_place((env)->w, node, word)
#define pl_env_seek_port(env, node, word)  pl_detect_seek_port((env)->w, node, word)
#define pl_env_seek_link(env, stack, before, ports)                                                \
	pl_detect_seek_link((env)->w, stack, before, ports)
#define pl_env_seek_exporter(env, keys)     ((void)(keys), pl_detect_seek_exporter((env)->w))
#define pl_env_seek_route(env, path_id)     pl_detect_seek_route((env)->w, path_id)
#define pl_env_expect(env, memo, has)       pl_detect_expect((env)->w, memo, has)
#define pl_env_expect_links(env, memo, has) pl_detect_expect_links((env)->w, memo, has)

#include "bpf/detect_profiles.bpf.h"
#include "bpf/detect_shares.bpf.h"
#include "core/detect_fast.h"

static __always_inline void env_init(struct pl_core_env *env, struct work *w)
{
	env->w = w;
	env->queue = w->queue;
	env->rules = &pl_rules[pl_control.active & 1];
}

/* --- hops ------------------------------------------------------------------------------------- */

#define MASK_LAYOUT (PL_CORE_LAYOUTS - 1)

/* Reads the metadata in the report's header. */
__attribute__((noinline)) int pl_detect_own(struct work *w)
{
	struct pl_core_block block = { .at = 0, .mask = PL_CORE_OWN_BYTES - 4 };
	struct pl_core_scratch *s;

	if (w == NULL)
		return 0;
	s = &w->scratch;
	block.bytes = s->own_block;
	pl_core_own_hop(s, &w->own, &block, &pl_layouts.slot[s->own_layout & MASK_LAYOUT]);
	return 0;
}

__attribute__((noinline)) int pl_detect_begin(struct work *w)
{
	struct pl_core_block block = { .at = 0, .mask = PL_CORE_STACK_BYTES - 4 };
	struct pl_core_scratch *s;

	if (w == NULL)
		return 0;
	s = &w->scratch;
	block.bytes = s->stack;
	return (int)pl_core_hops_begin(
		s, &w->own, &block, &pl_layouts.slot[s->stack_layout & MASK_LAYOUT]);
}

/* Values of hop i. */
__attribute__((noinline)) int pl_detect_read(struct work *w, uint32_t i)
{
	const struct pl_core_layout *l;
	struct pl_core_block block = { .mask = PL_CORE_STACK_BYTES - 4 };
	struct pl_core_scratch *s;

	if (w == NULL)
		return 0;
	s = &w->scratch;
	l = &pl_layouts.slot[s->stack_layout & MASK_LAYOUT];
	block.bytes = s->stack;
	block.at = (s->stack_hops - 1 - i) * l->words * 4;
	pl_core_hop_next(s, i, &block, l, &w->own);
	return 0;
}

/* Returns hop i, inside the scratch for any i. */
static __always_inline const struct pl_core_hop *hop_at(const struct work *w, uint32_t i)
{
	return &w->scratch.hops[i & (PL_CORE_HOPS_MAX - 1)];
}

/* The steps of hop i, in two functions: together they would need more stack than there is below
 * them. */
__attribute__((noinline)) int pl_detect_trail(struct work *w, uint32_t i)
{
	struct pl_core_env env;

	if (w == NULL)
		return 0;
	env_init(&env, w);
	pl_core_trail_step(&env, &w->scratch.report, hop_at(w, i));
	return 0;
}

__attribute__((noinline)) int pl_detect_hop(struct work *w, uint32_t i)
{
	struct pl_core_env env;

	if (w == NULL)
		return 0;
	env_init(&env, w);
	pl_core_values_step(&env, &w->scratch.report, hop_at(w, i));
	return 0;
}

__attribute__((noinline)) int pl_detect_end(struct work *w)
{
	struct pl_core_env env;
	uint32_t n;

	if (w == NULL)
		return 0;
	env_init(&env, w);
	n = w->scratch.n;
	pl_core_report_end(&env, &w->scratch.report, n > 0 ? hop_at(w, n - 1) : NULL);
	return 0;
}

__attribute__((noinline)) int pl_detect_number(struct work *w)
{
	struct pl_core_env env;

	if (w == NULL)
		return 0;
	env_init(&env, w);
	return (int)pl_core_exporter_step(&env, &w->scratch.report);
}

__attribute__((noinline)) int pl_detect_unproven(struct work *w)
{
	struct pl_core_env env;

	if (w == NULL)
		return 0;
	env_init(&env, w);
	pl_core_report_unproven(&env, &w->scratch.report);
	return 0;
}

__attribute__((noinline)) int pl_detect_delay(struct work *w)
{
	struct pl_core_env env;

	if (w == NULL)
		return 0;
	env_init(&env, w);
	if (pl_core_delay_counts(env.rules, &w->scratch.report))
		pl_core_delay_step(&env, &w->scratch.report, &w->own.hop, w->scratch.latency_ns);
	return 0;
}

__attribute__((noinline)) int pl_detect_route(struct work *w)
{
	struct pl_core_env env;

	if (w == NULL)
		return 0;
	env_init(&env, w);
	pl_core_route_step(&env, &w->scratch.report, w->scratch.latency_ns);
	return 0;
}

/* --- the fast path ---------------------------------------------------------------------------- */

#define FRAME_MAX     0x3fff /* mask of offsets in a frame, above any interface's frames */
#define FETCHED_LINES 8      /* 15 hops of nodes, 6 of 8 fields each */

#define SEEK(name, params, ...)                                                                    \
	__attribute__((noinline)) int pl_detect_seek_##name params                                 \
	{                                                                                          \
		struct pl_core_env env;                                                            \
                                                                                                   \
		if (w == NULL)                                                                     \
			return (int)PL_FAST_NOWHERE;                                               \
		env_init(&env, w);                                                                 \
		return (int)pl_fast_seek_##name(&env, __VA_ARGS__);                                \
	}
SEEK(place, (struct work * w, uint32_t node, uint64_t word), node, word)
SEEK(port, (struct work * w, uint32_t node, uint64_t word), node, word)
SEEK(link, (struct work * w, uint64_t stack, uint64_t before, uint32_t ports), stack, before, ports)
SEEK(exporter, (struct work * w), &w->keys)
SEEK(route, (struct work * w, uint64_t path_id), path_id)
#undef SEEK

#define EXPECT(name)                                                                               \
	__attribute__((noinline)) int pl_detect_##name(                                            \
		struct work *w, struct pl_fast_memo *memo, uint32_t has)                           \
	{                                                                                          \
		struct pl_core_env env;                                                            \
                                                                                                   \
		if (w == NULL || memo == NULL)                                                     \
			return 0;                                                                  \
		env_init(&env, w);                                                                 \
		pl_fast_##name(&env, memo, has);                                                   \
		return 0;                                                                          \
	}
EXPECT(expect)
EXPECT(expect_links)
#undef EXPECT

/* Prefetches all lines of the frame before the first is read. Each may have to come from the
 * processor that wrote it, and one after the other those transfers took 41 % of this program's
 * time. */
static __always_inline void fetch_lines(const struct xdp_md *ctx)
{
	const uint8_t *p = (const uint8_t *)(long)ctx->data,
		      *end = (const uint8_t *)(long)ctx->data_end;

#pragma unroll
	for (int i = 0; i < FETCHED_LINES; i++, p += 64) {
		if (p + 1 > end)
			break;
		(void)*(const volatile uint8_t *)p;
	}
}

/* True when the filter takes packets to this destination, which has a wanted port. It may be false
 * where pl_filter_frame takes the frame. */
__attribute__((noinline)) int pl_detect_meant(const struct pl_fast_to *to)
{
	const struct pl_filter_rules *rules = &pl_filter.rules[pl_filter.active & 1];

	if (to == NULL)
		return 0;
	if (!rules->any_vlan &&
		(to->vlan_outer == 0 || !pl_filter_has_vlan(rules, to->vlan_outer)) &&
		(to->vlan == 0 || !pl_filter_has_vlan(rules, to->vlan)))
		return 0;
	return pl_filter_has_addr(rules, to->addr[0], to->addr[1]);
}

/* Passes the cursor through memory: from here on it is one unknown position to the verifier, and
 * earlier differences between headers are forgotten. Otherwise the verifier would follow each
 * combination of headers to the program's end. */
static __always_inline void converge(
	struct pl_frame_cursor *c, const struct xdp_md *ctx, struct work *w)
{
	volatile uint32_t *at = &w->cursor_at, *left = &w->cursor_left;

	*at = (uint32_t)(c->pos - (const uint8_t *)(long)ctx->data);
	*left = c->left;
	__asm__ volatile("" ::: "memory");
	c->pos = (const uint8_t *)(long)ctx->data + (uint64_t)(*at & FRAME_MAX);
	PL_FRAME_OPAQUE(c->pos);
	c->end = (const uint8_t *)(long)ctx->data_end;
	c->left = *left;
}

/* Reads the headers of a common report in a frame that the filter takes: its keys, its form and the
 * place of its stack. Returns an enum pl_slow. */
static __always_inline uint32_t read_headers(struct xdp_md *ctx, struct work *w)
{
	const struct pl_filter_rules *rules = &pl_filter.rules[pl_filter.active & 1];
	const uint8_t *frame = (const uint8_t *)(long)ctx->data;
	struct pl_frame_cursor c = { .pos = frame, .end = (const uint8_t *)(long)ctx->data_end };
	struct pl_fast_to *to = &w->to;
	uint64_t layout_key;
	struct pl_fast q;
	uint32_t slow;

	q.keys = &w->keys;
	c.left = w->frame_bytes = (uint32_t)(c.end - frame);
	if (!pl_fast_carrier(q.keys, &c, to) || !pl_filter_has_port(rules, to->port))
		return PL_SLOW_CARRIER;
	if ((!rules->any_vlan || rules->naddrs != 0) && !pl_detect_meant(to))
		return PL_SLOW_CARRIER;
	converge(&c, ctx, w);
	if (!pl_fast_header(&q, &c))
		return PL_SLOW_REPORT;
	converge(&c, ctx, w);
	if (!pl_fast_inner(&q, &c, pl_control.vxlan_ports))
		return PL_SLOW_INNER;
	converge(&c, ctx, w);
	if (!layout_key_of(w, &layout_key))
		return PL_SLOW_RULES;
	slow = pl_fast_int(&q, &c, &pl_layouts, layout_key);
	if (slow != PL_SLOW_NONE)
		return slow;
	pl_core_copy(w->form, &q.seq, PL_FAST_FORM_WORDS);
	w->stack_at = (uint32_t)(q.stack - (const uint8_t *)(long)ctx->data);
	return PL_SLOW_NONE;
}

__attribute__((noinline)) int pl_detect_route_sums(struct work *w, uint32_t hops)
{
	struct pl_core_env env;

	if (w == NULL)
		return 0;
	env_init(&env, w);
	pl_fast_route_sums(&env, hops);
	return 0;
}

__attribute__((noinline)) int pl_detect_sums(struct work *w, uint32_t i)
{
	struct pl_core_env env;

	if (w == NULL)
		return 0;
	env_init(&env, w);
	pl_fast_sums(&env, i);
	return 0;
}

/* Counts all hops that did not change. */
__attribute__((noinline)) int pl_detect_fast_sums(struct work *w)
{
	uint32_t n;

	if (w == NULL)
		return 0;
	n = w->marks.hops;
#pragma clang loop unroll(disable)
	for (uint32_t i = 0; i < PL_FAST_HOPS && i < n; i++) {
		if ((w->marks.changed >> i & 1) == 0)
			pl_detect_sums(w, i);
	}
	return pl_detect_route_sums(w, n);
}

__attribute__((noinline)) int pl_detect_learn(struct work *w)
{
	struct pl_core_env env;

	if (w == NULL)
		return 0;
	env_init(&env, w);
	pl_fast_learn(&env, &w->scratch);
	return 0;
}

/* Handles the report whose headers were read. Returns a value of enum pl_slow. */
static __always_inline uint32_t fast(struct xdp_md *ctx, struct work *w)
{
	const uint32_t sample = pl_control.sample;
	struct pl_fast q = { .print = 0 };
	struct pl_core_env env;
	uint32_t slow;

	if (pl_control.general || pl_control.match || (sample != 0 && w->packets % sample == 0))
		return PL_SLOW_RULES;
	env_init(&env, w);
	if (!env.rules->prepared.fast)
		return PL_SLOW_RULES;
	w->keys.flow_hash = pl_fast_flow_hash(env.rules, &w->keys);
	pl_fast_expect_flow(&env, w->keys.flow_hash);
	q.keys = &w->keys;
	pl_core_copy(&q.seq, w->form, PL_FAST_FORM_WORDS);
	q.stack = (const uint8_t *)(long)ctx->data + (w->stack_at & FRAME_MAX);
	q.end = (const uint8_t *)(long)ctx->data_end;
	/* The barrier has values loaded from here on when they are needed: there is little
	 * stack. */
	__asm__ volatile("" ::: "memory");
	slow = pl_fast_step(&env, &q, &pl_layouts.slot[q.layout & MASK_LAYOUT], pl_control.now_ns,
		pl_control.ts_ns, pl_control.max_latency_ns);
	if (slow != PL_SLOW_NONE)
		return slow;
	w->counters.fast++;
	w->counters.fast_bytes += w->frame_bytes;
	w->counters.fast_hops += q.hops;
	w->packets += sample != 0;
	if (w->marks.missing)
		w->counters.notes[PL_N_VALUES_MISSING]++;
	pl_filter_count(PL_FILTER_TAKEN);
	if (w->marks.keep)
		pl_detect_fast_sums(w);
	return PL_SLOW_NONE;
}

/* --- the report ------------------------------------------------------------------------------- */

/* Bytes of the frame; 64 bits, since the verifier loses sight of the difference of pointers in
 * 32. */
static __always_inline uint64_t frame_size(const struct xdp_md *ctx)
{
	uint64_t size =
		(uint64_t)((const uint8_t *)(long)ctx->data_end - (const uint8_t *)(long)ctx->data);

	PL_FRAME_OPAQUE(size);
	return size;
}

/*
 * The parts of the parser are functions of their own, so that the verifier looks at each once:
 * between them a cursor is two numbers in the scratch.
 */
static __always_inline void cursor_load(struct pl_frame_cursor *c, const struct xdp_md *ctx,
	const struct pl_core_scratch *s, uint32_t i)
{
	uint64_t at = s->at[i] & FRAME_MAX;

	c->pos = (const uint8_t *)(long)ctx->data + at;
	c->end = (const uint8_t *)(long)ctx->data_end;
	c->left = s->left[i];
}

static __always_inline void cursor_store(struct pl_core_scratch *s, uint32_t i,
	const struct xdp_md *ctx, const struct pl_frame_cursor *c)
{
	s->at[i] = (uint32_t)(c->pos - (const uint8_t *)(long)ctx->data);
	s->left[i] = c->left;
}

__attribute__((noinline)) int pl_detect_version(struct xdp_md *ctx, struct work *w)
{
	const struct pl_core_profile *profile;
	struct pl_frame_cursor c;

	if (w == NULL)
		return PL_ESCALATION_REPORT;
	profile = profile_of(&w->scratch.report.exporter);
	cursor_load(&c, ctx, &w->scratch, 0);
	return (int)pl_core_version(&w->scratch, c, profile);
}

__attribute__((noinline)) int pl_detect_header(struct xdp_md *ctx, struct work *w)
{
	const struct pl_core_profile *profile;
	struct pl_frame_cursor c;
	uint32_t inner = PL_CORE_NO_INNER;
	int escalate;

	if (w == NULL)
		return PL_ESCALATION_REPORT;
	profile = profile_of(&w->scratch.report.exporter);
	cursor_load(&c, ctx, &w->scratch, 0);
	escalate = (int)pl_core_header(&w->scratch, &c, &pl_layouts, profile, &inner);
	cursor_store(&w->scratch, 0, ctx, &c);
	w->scratch.inner = inner;
	return escalate;
}

/* Stores where INT may be. */
__attribute__((noinline)) int pl_detect_inner(struct xdp_md *ctx, struct work *w)
{
	struct pl_core_payload payload = { .over_l4 = 0 };
	struct pl_frame_cursor c;
	int escalate;

	if (w == NULL)
		return PL_ESCALATION_INNER;
	cursor_load(&c, ctx, &w->scratch, 0);
	escalate = (int)pl_core_inner(&w->scratch, &c, w->scratch.inner, &payload);
	w->scratch.inner = PL_CORE_NO_INNER;
	if (escalate == PL_ESCALATION_NONE && payload.over_l4) {
		cursor_store(&w->scratch, 0, ctx, &payload.at);
		cursor_store(&w->scratch, 1, ctx, &payload.before);
		w->scratch.inner = 0;
		w->scratch.dscp = payload.dscp;
	}
	return escalate;
}

/* Returns the place in which to search for INT: a value of enum pl_core_search. */
__attribute__((noinline)) int pl_detect_search(struct xdp_md *ctx, struct work *w)
{
	struct pl_core_payload payload = { .over_l4 = 1 };
	int search;

	if (w == NULL)
		return PL_CORE_SEARCH_NOT;
	cursor_load(&payload.at, ctx, &w->scratch, 0);
	cursor_load(&payload.before, ctx, &w->scratch, 1);
	payload.dscp = w->scratch.dscp;
	search = (int)pl_core_search_int(
		&w->scratch, &payload, profile_of(&w->scratch.report.exporter));
	w->scratch.expected = payload.expected;
	return search;
}

__attribute__((noinline)) int pl_detect_int(struct xdp_md *ctx, struct work *w, uint32_t i)
{
	const struct pl_core_profile *profile;
	struct pl_frame_cursor c;

	if (w == NULL)
		return PL_CORE_UP;
	profile = profile_of(&w->scratch.report.exporter);
	cursor_load(&c, ctx, &w->scratch, i & 1);
	return (int)pl_core_try_int(&w->scratch, &c, &pl_layouts, profile);
}

/* Reads the sender of the frame; 0 when the frame is cut before it. */
static __always_inline int read_source(const struct pl_filter_frame *f, struct pl_core_scratch *s)
{
	if (f->ip_version == 4) {
		if (f->ip + 20 > f->end)
			return 0;
		pl_core_addr_v4(&s->report.exporter, f->ip + 12);
	} else {
		if (f->ip + 40 > f->end)
			return 0;
		pl_core_addr_v6(&s->report.exporter, f->ip + 8);
	}
	return 1;
}

/* The report in the frame, up to its hops' bytes. A value of enum pl_escalation. */
static __always_inline uint32_t read_report(
	struct xdp_md *ctx, const struct pl_filter_frame *f, struct work *w)
{
	struct pl_core_scratch *s = &w->scratch;
	const struct pl_core_profile *profile;
	uint32_t length, escalate, found, search;

	s->report.now_ns = pl_control.now_ns;
	s->report.ts_ns = pl_control.ts_ns;
	s->max_latency_ns = pl_control.max_latency_ns;
	s->vxlan_ports = pl_control.vxlan_ports;
	if (f->udp + 8 > f->end)
		return PL_ESCALATION_CARRIER;
	profile = profile_of(&s->report.exporter);
	escalate = pl_core_carrier(f->ip, f->udp, f->ip_version, (uint32_t)(f->udp - f->ip),
		(uint32_t)(f->end - f->ip), profile, &length, &s->marked);
	if (escalate != PL_ESCALATION_NONE)
		return escalate;
	s->at[0] = (uint32_t)(f->payload - (const uint8_t *)(long)ctx->data);
	s->left[0] = length;
	escalate = (uint32_t)pl_detect_version(ctx, w);
	if (escalate != PL_ESCALATION_NONE)
		return escalate;
	escalate = (uint32_t)pl_detect_header(ctx, w);
	if (escalate != PL_ESCALATION_NONE || s->inner == PL_CORE_NO_INNER || s->left[0] == 0)
		return escalate;
	escalate = (uint32_t)pl_detect_inner(ctx, w);
	if (escalate != PL_ESCALATION_NONE || s->inner == PL_CORE_NO_INNER)
		return escalate;
	search = (uint32_t)pl_detect_search(ctx, w);
	if (search <= PL_CORE_SEARCH_UP)
		return search == PL_CORE_SEARCH_UP ? PL_ESCALATION_INT : PL_ESCALATION_NONE;
	found = (uint32_t)pl_detect_int(ctx, w, search == PL_CORE_SEARCH_BEFORE);
	if (found == PL_CORE_NOT && search == PL_CORE_SEARCH_AT && s->left[1] > s->left[0] &&
		pl_core_search_both(profile))
		found = (uint32_t)pl_detect_int(ctx, w, 1);
	return pl_core_int_found(s, found, s->expected);
}

/*
 * 1 to max bytes of the frame; 0 when it is not so many or they are not there. Verifiers before 6.8
 * do not learn from "not 0" that there is 1 at least.
 */
static __always_inline int load_bytes(
	struct xdp_md *ctx, uint32_t at, void *to, uint64_t n, uint32_t max)
{
	n -= 1;
	PL_FRAME_OPAQUE(n);
	if (n >= max)
		return 0;
	return bpf_xdp_load_bytes(ctx, at, to, (uint32_t)n + 1) == 0;
}

/* The bytes of metadata and stack into the scratch. 0 when they are not there. */
static __always_inline int copy_bytes(struct xdp_md *ctx, struct pl_core_scratch *s)
{
	const uint32_t size = (uint32_t)frame_size(ctx);

	if ((s->own & OWN_METADATA) &&
		!load_bytes(ctx, size - s->own_at, s->own_block, s->own_bytes, PL_CORE_OWN_BYTES))
		return 0;
	return s->stack_bytes == 0 ||
	       load_bytes(ctx, size - s->stack_at, s->stack, s->stack_bytes, PL_CORE_STACK_BYTES);
}

static __always_inline void count_notes(struct work *w)
{
	uint64_t notes = w->scratch.notes;

	for (uint32_t i = 0; i < 64 && notes != 0; i++) {
		w->counters.notes[i] += notes & 1;
		notes >>= 1;
	}
}

static __always_inline int same_addr(const struct pl_addr *a, const struct pl_addr *b)
{
	const uint64_t *x = (const uint64_t *)(const void *)a->b;
	const uint64_t *y = (const uint64_t *)(const void *)b->b;

	return x[0] == y[0] && x[1] == y[1];
}

/* True when a settled report must be copied to user space. */
__attribute__((noinline)) int pl_detect_wanted(struct work *w)
{
	const struct pl_kernel_control *m = &pl_control;
	const struct pl_core_report *r;
	const struct pl_addr none = { { 0 } };
	uint32_t node = 0;

	if (w == NULL)
		return 0;
	r = &w->scratch.report;
	if (m->sample != 0 && w->packets++ % m->sample == 0)
		return 1;
	if (!m->match || (m->match_flags != 0 && (r->flags & m->match_flags) == 0))
		return 0;
	if (!same_addr(&m->match_addr, &none) && !same_addr(&m->match_addr, &r->flow.src) &&
		!same_addr(&m->match_addr, &r->flow.dst))
		return 0;
	if (!m->match_node_set || r->node == m->match_node)
		return 1;
	for (uint32_t i = 0; i < PL_CORE_HOPS_MAX && i < w->scratch.n; i++)
		node |= w->scratch.hops[i].node == m->match_node;
	return (int)node;
}

enum up { UP_PUT, UP_FULL, UP_SHARE };

/* The frame into the ring. */
static __always_inline enum up frame_up(struct xdp_md *ctx, struct work *w, uint32_t cause)
{
	uint64_t size = frame_size(ctx);

	if (!pl_detect_room(w, (uint32_t)(sizeof(w->frame) + size)))
		return UP_SHARE;
	if (!load_bytes(ctx, 0, w->bytes, size, PL_KERNEL_FRAME_MAX)) {
		give_room(w, sizeof(w->frame) + size);
		return UP_FULL;
	}
	w->frame.ts_ns = pl_control.ts_ns;
	w->frame.len = (uint32_t)size;
	w->frame.wire_len = (uint32_t)size;
	w->frame.queue = (uint16_t)w->queue;
	w->frame.sender = (uint16_t)w->sender;
	w->frame.cause = (uint16_t)cause;
	size += sizeof(w->frame);
	PL_FRAME_OPAQUE(size);
	if (size <= sizeof(w->frame) + PL_KERNEL_FRAME_MAX &&
		bpf_ringbuf_output(&pl_frames, &w->frame, size, BPF_RB_NO_WAKEUP) == 0)
		return UP_PUT;
	give_room(w, size);
	return UP_FULL;
}

/* Puts the number of a settled report into its place among the frames. */
__attribute__((noinline)) int pl_detect_left(struct work *w)
{
	const struct pl_core_report *r;

	if (w == NULL)
		return 0;
	r = &w->scratch.report;
	w->number.frame.ts_ns = r->ts_ns;
	w->number.frame.queue = (uint16_t)w->queue;
	w->number.frame.number = PL_NUMBER_LEFT;
	w->number.of.exporter = r->exporter;
	w->number.of.node = r->node;
	w->number.of.seq = r->seq;
	w->number.of.hw_id = r->hw_id;
	w->number.of.report_version = r->report_version;
	w->counters.numbers++;
	if (!pl_detect_room(w, sizeof(w->number))) {
		w->counters.numbers_lost++;
		return 0;
	}
	w->number.frame.sender = (uint16_t)w->sender;
	if (bpf_ringbuf_output(&pl_frames, &w->number, sizeof(w->number), BPF_RB_NO_WAKEUP) < 0) {
		give_room(w, sizeof(w->number));
		w->counters.numbers_lost++;
	}
	return 0;
}

static __always_inline int escalate(struct xdp_md *ctx, struct work *w, uint32_t cause)
{
	uint64_t at = cause;

	/* The number that is compared is the one that is used, also to verifiers that follow one
	 * register. */
	PL_FRAME_OPAQUE(at);
	if (at >= PL_ESCALATION_MAX)
		at = 0;
	w->counters.escalated[at]++;
	if (pl_control.to_sockets) {
		int action = (int)bpf_redirect_map(&pl_xsks, ctx->rx_queue_index, XDP_DROP);

		if (action == XDP_REDIRECT)
			return action;
	}
	switch (frame_up(ctx, w, cause)) {
	case UP_PUT:
		break;
	case UP_FULL:
		w->counters.escalated_lost++;
		break;
	case UP_SHARE:
		w->counters.escalated_over_share++;
		break;
	}
	return XDP_DROP;
}

static __always_inline int settled_action(struct xdp_md *ctx)
{
	if (pl_control.copy_all)
		return (int)bpf_redirect_map(&pl_xsks, ctx->rx_queue_index, XDP_DROP);
	return XDP_DROP;
}

/* Makes the input for the steps of hops from a report that took the fast path. It is a separate
 * function, because the steps leave no stack for it. */
__attribute__((noinline)) int pl_detect_changed_report(struct work *w)
{
	struct pl_fast q = { .print = 0 };

	if (w == NULL)
		return 0;
	q.keys = &w->keys;
	pl_core_copy(&q.seq, w->form, PL_FAST_FORM_WORDS);
	pl_fast_report(&w->scratch.report, &q, &w->marks, pl_control.ts_ns);
	return 0;
}

/* After the fast path, for the hops that have something to check. */
SEC("xdp") int pl_detect_changed(struct xdp_md *ctx)
{
	uint32_t zero = 0;
	struct work *w = bpf_map_lookup_elem(&pl_work, &zero);

	if (w == NULL)
		return XDP_PASS;
	w->counters.changed++;
	pl_detect_changed_report(w);
	pl_detect_may_tell(w);
#pragma clang loop unroll(disable)
	for (uint32_t i = 0; i < PL_FAST_HOPS; i++) {
		if ((w->marks.changed >> i & 1) == 0)
			continue;
		pl_fast_hop(&w->scratch.hops[i & (PL_CORE_HOPS_MAX - 1)], &w->marks, i);
		pl_detect_hop(w, i);
	}
	pl_detect_told(w);
	turn_give(w);
	return settled_action(ctx);
}

#define NOT_A_REPORT PL_ESCALATION_MAX

/* Filters the frame and reads its report. A value of enum pl_escalation, or NOT_A_REPORT: the
 * host's, counted. */
__attribute__((noinline)) int pl_detect_report(struct xdp_md *ctx, struct work *w)
{
	struct pl_filter_frame f;
	uint32_t cause = pl_filter_frame(ctx, &f);

	if (w == NULL)
		return PL_ESCALATION_CARRIER;
	if (cause != PL_FILTER_TAKEN) {
		pl_filter_pass(cause);
		return NOT_A_REPORT;
	}
	pl_filter_count(PL_FILTER_TAKEN);
	w->counters.packets++;
	w->counters.bytes += frame_size(ctx);
	if (w->slow < PL_SLOW_MAX)
		w->counters.slow[w->slow]++;
	pl_core_scratch_clear(&w->scratch);
	if (!read_source(&f, &w->scratch) || w->queue >= pl_control.queues)
		return PL_ESCALATION_CARRIER;
	return (int)read_report(ctx, &f, w);
}

/* Counts the sequence number of a report that may be escalated, and returns the result. */
static __always_inline uint16_t number_of(struct work *w)
{
	uint32_t number;

	w->unproven = 0;
	if (!w->scratch.numbered)
		return PL_NUMBER_UNREAD;
	if (!w->turn)
		return PL_NUMBER_LATE;
	number = (uint32_t)pl_detect_number(w);
	w->unproven = number & PL_CORE_UNPROVEN;
	return number & PL_CORE_NUMBER_LEFT ? PL_NUMBER_LEFT : PL_NUMBER_COUNTED;
}

static __always_inline int general(struct xdp_md *ctx, struct work *w)
{
	struct pl_core_env env;
	uint32_t n, cause;

	cause = (uint32_t)pl_detect_report(ctx, w);
	if (cause == NOT_A_REPORT)
		return XDP_PASS;
	/* The fast path may have it already, or have waited in vain. */
	if (!w->turn && w->slow != PL_SLOW_TURN)
		w->turn = (uint32_t)turn_take(w);
	w->frame.number = number_of(w);
	if (cause == PL_ESCALATION_NONE && !w->turn)
		cause = PL_ESCALATION_TURN;
	if (cause != PL_ESCALATION_NONE)
		return escalate(ctx, w, cause);
	if (!copy_bytes(ctx, &w->scratch))
		return escalate(ctx, w, PL_ESCALATION_CARRIER);
	pl_detect_own(w);
	if (!pl_detect_begin(w))
		return escalate(ctx, w, PL_ESCALATION_HOPS);
	n = w->scratch.n;
#pragma clang loop unroll(disable)
	for (uint32_t i = 0; i < PL_CORE_HOPS_MAX && i < n; i++)
		pl_detect_read(w, i);
	if (w->scratch.unscaled)
		return escalate(ctx, w, PL_ESCALATION_PROFILE);
	pl_core_hops_end(&w->scratch);
	if (w->frame.number == PL_NUMBER_LEFT)
		pl_detect_left(w);
	if (w->scratch.notes != 0)
		count_notes(w);
	w->counters.settled++;
	pl_detect_may_tell(w);
	if (w->unproven) {
		pl_detect_unproven(w);
		pl_detect_told(w);
		return settled_action(ctx);
	}
	env_init(&env, w);
	pl_core_report_begin(&env, &w->scratch.report);
#pragma clang loop unroll(disable)
	for (uint32_t i = 0; i < PL_CORE_HOPS_MAX && i < n; i++) {
		pl_detect_trail(w, i);
		pl_detect_hop(w, i);
	}
	/* Called before an event names the path, so that the reader of the event can look up its
	 * nodes. */
	if (env.rules->flags & PL_CORE_KEEP_AGGREGATES)
		pl_detect_route(w);
	pl_detect_end(w);
	if (env.rules->watch & 1u << PL_CORE_Q_FLOW_LATENCY)
		pl_detect_delay(w);
	pl_detect_told(w);
	if (pl_fast_learns((uint32_t)w->slow))
		pl_detect_learn(w);
	if ((pl_control.sample | pl_control.match) != 0 && pl_detect_wanted(w)) {
		if (frame_up(ctx, w, PL_ESCALATION_NONE) == UP_PUT)
			w->counters.copied++;
		else
			w->counters.copies_lost++;
	}
	return settled_action(ctx);
}

SEC("xdp") int pl_detect_general(struct xdp_md *ctx)
{
	uint32_t zero = 0;
	struct work *w = bpf_map_lookup_elem(&pl_work, &zero);
	int action;

	if (w == NULL)
		return XDP_PASS;
	action = general(ctx, w);
	if (w->turn)
		turn_give(w);
	return action;
}

/* Programs that may follow: each has the whole stack, and the verifier's whole budget. */
enum { THEN_GENERAL, THEN_CHANGED, THEN_MAX };

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, THEN_MAX);
	__uint(key_size, sizeof(uint32_t));
	__array(values, int(struct xdp_md *));
} pl_then SEC(".maps") = { .values = { [THEN_GENERAL] = (void *)&pl_detect_general,
				   [THEN_CHANGED] = (void *)&pl_detect_changed } };

/*
 * The fast path. Between its halves all results are in memory: whatever the headers were, the
 * verifier sees a single state there and follows it once. There is neither a function call nor a
 * tail call between them, because either costs more than reading the headers of the reported
 * packet.
 */
SEC("xdp") int pl_detect(struct xdp_md *ctx)
{
	uint32_t zero = 0;
	struct work *w = bpf_map_lookup_elem(&pl_work, &zero);

	if (w == NULL)
		return XDP_PASS;
	fetch_lines(ctx);
	w->queue = ctx->rx_queue_index;
	w->turn = 0;
	w->slow = w->queue < pl_control.queues ? read_headers(ctx, w) : PL_SLOW_CARRIER;
	__asm__ volatile("" ::: "memory");
	if (*(volatile uint64_t *)&w->slow == PL_SLOW_NONE) {
		w->turn = (uint32_t)turn_take(w);
		w->slow = w->turn ? fast(ctx, w) : PL_SLOW_TURN;
	}
	if (w->slow != PL_SLOW_NONE) {
		bpf_tail_call(ctx, &pl_then, THEN_GENERAL);
	} else if (w->marks.changed) {
		bpf_tail_call(ctx, &pl_then, THEN_CHANGED);
	} else {
		turn_give(w);
		return settled_action(ctx);
	}
	return XDP_PASS; /* not reached, because the programs are in place from the start */
}

/* The kernel takes this word for the dual licence of the first line. */
char _license[] SEC("license") = "Dual BSD/GPL";

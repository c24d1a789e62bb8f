/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random expressions: trees that are printed for the engine, and evaluated here in 128-bit numbers,
 * a record at a time.
 */
#include "query/random_test.h"

struct pl_rng pl_random;

static struct expr pool[4096];
static unsigned int n_pool;

void pl_random_forget(void)
{
	n_pool = 0;
}

static struct expr *fresh(char op, enum kind kind)
{
	struct expr *e = &pool[n_pool++];

	*e = (struct expr){ .op = op, .kind = kind };
	return e;
}

static const char *const columns[] = { "ttl", "dport", "tcp_flags", "wire_len", "tcp_seq", "point",
	"proto" };
static const char *const conditions[] = { "tcp", "udp", "icmp", "syn_only", "syn_ack", "ack_only",
	"fin", "rst", "ack", "psh", "is_fragment", "out" };

static uint64_t column_of(const struct pl_pkt64 *p, unsigned int which)
{
	const uint64_t values[] = { p->ttl, p->dport, p->tcp_flags, p->wire_len, p->tcp_seq,
		p->obs % 1024, p->proto };

	return values[which];
}

static bool condition_of(const struct pl_pkt64 *p, unsigned int which)
{
	const bool tcp = p->proto == 6, syn = (p->tcp_flags & 2) != 0,
		   ack = (p->tcp_flags & 16) != 0;
	const bool fin = (p->tcp_flags & 1) != 0, rst = (p->tcp_flags & 4) != 0;
	const bool psh = (p->tcp_flags & 8) != 0;
	const bool values[] = { tcp, p->proto == 17, p->proto == 1 || p->proto == 58,
		tcp && syn && !ack && !fin && !rst, tcp && syn && ack && !fin && !rst,
		tcp && !syn && ack && !fin && !rst, tcp && fin, tcp && rst, tcp && ack, tcp && psh,
		(p->obs & 1024) != 0, (p->obs & 4096) != 0 };

	return values[which];
}

static struct expr *leaf(void)
{
	static const uint64_t constants[] = { 0, 1, 2, 3, 6, 7, 16, 23, 64, 255, 256, 65535,
		UINT32_MAX, INT64_MAX, (uint64_t)1 << 63, UINT64_MAX };
	struct expr *e;

	if (below(3) > 0) {
		e = fresh('c', U);
		e->which = below(7);
		strcpy(e->word, columns[e->which]);
		return e;
	}
	e = fresh('k', U);
	e->constant = whole(U, constants[below(4) == 0 ? below(16) : below(9)]);
	sprintf(e->word, below(2) ? "%" PRIu64 : "0x%" PRIx64, (uint64_t)e->constant.i);
	if (below(10) == 0) {
		e->kind = D;
		e->constant = real(below(100) / 8.0);
		sprintf(e->word, "%.3f", e->constant.d);
	}
	return e;
}

struct expr *pl_random_number(unsigned int depth)
{
	static const char ops[] = "+-*/%&|";
	struct expr *a, *b, *e;

	if (depth == 0 || below(3) == 0)
		return leaf();
	a = pl_random_number(depth - 1);
	if (below(8) == 0 && a->op != 'k') {
		/* Of an unsigned number the signed one, negative. */
		e = fresh('n', a->kind == D ? D : S);
		e->a = a;
		return e;
	}
	if (below(12) == 0) {
		e = fresh('d', D);
		e->a = a;
		return e;
	}
	if (below(12) == 0 && a->kind == S) {
		e = fresh('A', U);
		e->a = a;
		return e;
	}
	b = pl_random_number(depth - 1);
	if (below(5) == 0) {
		/* Of values of one type: it is known without conversions of constants. */
		if (a->kind != b->kind)
			return a;
		e = fresh("Lmi"[below(3)], a -> kind);
		e->a = a;
		e->b = b;
		if (e->op == 'i')
			e->c = pl_random_condition(depth - 1);
		return e;
	}
	e = fresh(ops[below(a->kind == D || b->kind == D ? 4 : 7)], U);
	e->a = a;
	e->b = b;
	if (a->kind == D || b->kind == D)
		e->kind = D;
	else if (a->kind == S || b->kind == S || e->op == '-')
		e->kind = S;
	/* A constant that fits no signed number is refused beside one. */
	for (int side = 0; side < 2; side++) {
		const struct expr *x = side ? b : a, *y = side ? a : b;

		if (x->op == 'k' && x->kind == U && y->kind == S && x->constant.i > INT64_MAX)
			return leaf();
	}
	return e;
}

struct expr *pl_random_condition(unsigned int depth)
{
	static const char ops[] = "=!<>lg"; /* l: <=, g: >= */
	struct expr *e;

	if (depth > 0 && below(2) == 0) {
		e = fresh("aon"[below(3)], B);
		if (e->op == 'n')
			e->op = '~';
		e->a = pl_random_condition(depth - 1);
		e->b = pl_random_condition(depth - 1);
		return e;
	}
	switch (below(6)) {
	case 0:
	case 1:
		e = fresh('C', B);
		e->which = below(12);
		strcpy(e->word, conditions[e->which]);
		return e;
	case 2: {
		static const char *const prefixes[] = { "10.0.0.0/8", "10.0.0.0/30", "10.0.0.4/31",
			"fd00::/16", "10.0.0.3/32", "::/0" };

		e = fresh('p', B);
		e->which = below(6);
		e->constant.i = below(2); /* src or dst */
		sprintf(e->word, "%s in %s", e->constant.i ? "src" : "dst", prefixes[e->which]);
		return e;
	}
	default:
		e = fresh(ops[below(6)], B);
		e->a = pl_random_number(depth > 1 ? depth - 1 : 1);
		e->b = pl_random_number(below(2) ? 0 : 1);
		return e;
	}
}

void pl_random_print(char **to, const struct expr *e)
{
	static const char *const words[][2] = { { "a", "and" }, { "o", "or" }, { "!", "!=" },
		{ "l", "<=" }, { "g", ">=" } };
	char op[2] = { e->op, 0 };
	const char *word = op;

	if (strchr("ckCp", e->op) != NULL) {
		*to += sprintf(*to, "%s", e->word);
		return;
	}
	if (e->op == 'n' || e->op == '~' || e->op == 'd') {
		*to += sprintf(*to, "%s", e->op == 'n' ? "-(" : e->op == 'd' ? "double(" : "not (");
		pl_random_print(to, e->a);
		*to += sprintf(*to, ")");
		return;
	}
	if (strchr("ALmi", e->op) != NULL) {
		*to += sprintf(*to, "%s(",
			e->op == 'A'   ? "abs"
			: e->op == 'L' ? "least"
			: e->op == 'm' ? "greatest"
				       : "if");
		if (e->c != NULL) {
			pl_random_print(to, e->c);
			*to += sprintf(*to, ", ");
		}
		pl_random_print(to, e->a);
		if (e->b != NULL) {
			*to += sprintf(*to, ", ");
			pl_random_print(to, e->b);
		}
		*to += sprintf(*to, ")");
		return;
	}
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (words[i][0][0] == e->op)
			word = words[i][1];
	}
	*to += sprintf(*to, "(");
	pl_random_print(to, e->a);
	*to += sprintf(*to, " %s ", word);
	pl_random_print(to, e->b);
	*to += sprintf(*to, ")");
}

/* ---- evaluated ---- */

static struct value to_double(struct value v)
{
	if (v.kind == D || v.absent)
		return v.kind == D ? v : absent(D);
	return real(v.kind == S ? (double)(int64_t)v.i : (double)(uint64_t)v.i);
}

static struct value calculate(char op, enum kind kind, struct value a, struct value b)
{
	if (kind == D) {
		a = to_double(a);
		b = to_double(b);
		if (a.absent || b.absent || (op == '/' && b.d == 0))
			return absent(D);
		return real(op == '+'   ? a.d + b.d
			    : op == '-' ? a.d - b.d
			    : op == '*' ? a.d * b.d
					: a.d / b.d);
	}
	if (a.absent || b.absent)
		return absent(kind);
	/* Beside a signed number an unsigned one is signed. */
	if ((a.kind == S || b.kind == S) && (a.i > INT64_MAX || b.i > INT64_MAX))
		return absent(kind);
	if ((op == '/' || op == '%') && b.i == 0)
		return absent(kind);
	switch (op) {
	case '+':
		return whole(kind, a.i + b.i);
	case '-':
		return whole(kind, a.i - b.i);
	case '*':
		if (a.i != 0 && b.i != 0 && kind == U && a.i > UINT64_MAX / b.i)
			return absent(kind);
		return whole(kind, a.i * b.i);
	case '/':
		return whole(kind, a.i / b.i);
	case '%':
		return whole(kind, a.i % b.i);
	case '&':
		return whole(kind, a.i & b.i);
	default:
		return whole(kind, a.i | b.i);
	}
}

bool pl_random_compared(char op, struct value a, struct value b)
{
	int order;

	if (a.absent || b.absent)
		return false;
	if (a.kind == D || b.kind == D) {
		a = to_double(a);
		b = to_double(b);
		order = a.d < b.d ? -1 : a.d > b.d;
	} else {
		order = a.i < b.i ? -1 : a.i > b.i;
	}
	return op == '='   ? order == 0
	       : op == '!' ? order != 0
	       : op == '<' ? order < 0
	       : op == '>' ? order > 0
	       : op == 'l' ? order <= 0
			   : order >= 0;
}

static bool in_prefix(const struct pl_addr *a, unsigned int which)
{
	bool v4 = a->b[0] == 0 && a->b[1] == 0;

	switch (which) {
	case 0:
		return v4 && a->b[12] == 10;
	case 1:
		return v4 && a->b[12] == 10 && a->b[13] == 0 && a->b[14] == 0 && a->b[15] < 4;
	case 2:
		return v4 && a->b[12] == 10 && (a->b[15] == 4 || a->b[15] == 5);
	case 3:
		return a->b[0] == 0xfd;
	case 4:
		return v4 && a->b[12] == 10 && a->b[15] == 3;
	default:
		return true;
	}
}

static struct value truth(bool b)
{
	return (struct value){ .kind = B, .i = b };
}

struct value pl_random_evaluate(const struct expr *e, const struct pl_pkt64 *p)
{
	struct value a, b;

	switch (e->op) {
	case 'c':
		return whole(U, column_of(p, e->which));
	case 'k':
		return e->constant;
	case 'C':
		return truth(condition_of(p, e->which));
	case 'p':
		return truth(in_prefix(e->constant.i ? &p->src : &p->dst, e->which));
	case 'a':
		return truth(pl_random_evaluate(e->a, p).i && pl_random_evaluate(e->b, p).i);
	case 'o':
		return truth(pl_random_evaluate(e->a, p).i || pl_random_evaluate(e->b, p).i);
	case '~':
		return truth(!pl_random_evaluate(e->a, p).i);
	case 'd':
		return to_double(pl_random_evaluate(e->a, p));
	case 'A':
		a = pl_random_evaluate(e->a, p);
		return a.absent ? absent(U) : whole(U, a.i < 0 ? -a.i : a.i);
	case 'i':
		return pl_random_evaluate(pl_random_evaluate(e->c, p).i ? e->a : e->b, p);
	case 'L':
	case 'm':
		a = pl_random_evaluate(e->a, p);
		b = pl_random_evaluate(e->b, p);
		if (a.absent || b.absent)
			return absent(e->kind);
		return pl_random_compared('<', a, b) == (e->op == 'L') ? a : b;
	case 'n':
		a = pl_random_evaluate(e->a, p);
		if (a.kind == D)
			return a.absent ? a : real(-a.d);
		/* The operand has to be a signed number first. */
		return a.absent || a.i > INT64_MAX ? absent(S) : whole(S, -a.i);
	default:
		if (e->kind == B)
			return truth(pl_random_compared(
				e->op, pl_random_evaluate(e->a, p), pl_random_evaluate(e->b, p)));
		return calculate(
			e->op, e->kind, pl_random_evaluate(e->a, p), pl_random_evaluate(e->b, p));
	}
}

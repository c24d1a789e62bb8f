/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Explicit flow measurement (RFC 9506) at a single observer: both endpoints of a connection set
 * bits in packets, and a point on the path computes round-trip times and loss from them, without
 * synchronised clocks and without a second point. This file evaluates the bits of one connection;
 * mark/observer.h finds the connections.
 *
 * Of a direction (from A by the observer to B):
 *
 *   rtt     time between two edges of the spin bit, or between two delay samples
 *   half    the part beyond the observer: to B and back, by the next edge or sample of the other
 *           direction
 *   uloss   loss before the observer: blocks of N packets of the square bit, 1 - avg(p)/N
 *   eloss   loss from end to end: the share of packets with the loss event bit
 *   dloss   loss behind it: (eloss - uloss) / (1 - uloss), or by the reflection bit
 *   tqloss  loss from B to A and on to the observer: blocks of the reflection bit, 1 - avg(t)/N
 *
 * Reordering. An observer sees no packet numbers, so it judges by order and time:
 *
 * - Blocks (square, reflection): for X packets behind the first one of the new colour, packets of
 *   the old colour belong to the old block (RFC 9506 3.2.3).
 * - Spin edges: a spin period may have one packet only, so packets cannot be counted. An edge is
 *   taken unless it comes within a quarter of the usual interval of edges after the one before, and
 *   an interval of more than four times the usual is no round-trip time: the sender paused, or an
 *   edge was lost (RFC 9312 3.8.2 asks for such a judgement). The usual interval is the median of
 *   the 16 intervals around, each weighted by its length: false edges of stragglers, many and
 *   short, weigh little, and no pause, few and long, weighs more than four times the third longest
 *   interval (of fewer than 12 intervals the second longest, of fewer than 4 the longest).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum pl_efm_bit {
	PL_EFM_SPIN,
	PL_EFM_DELAY,
	PL_EFM_SQUARE,
	PL_EFM_LOSS,
	PL_EFM_REFLECTION,
	PL_EFM_ROUND_TRIP,
	PL_EFM_ECN_ECHO,
	PL_EFM_BITS,
};

#define PL_EFM_SQUARE_MIN    64u
#define PL_EFM_SQUARE_MAX    32768u
#define PL_EFM_THRESHOLD_MAX 31u /* below half of the shortest block */
#define PL_EFM_THRESHOLD     16u

struct pl_efm_config {
	uint8_t masks[PL_EFM_BITS]; /* mask of each bit in its byte; 0: absent */
	uint32_t square;            /* N, a power of two; 0: the length of most blocks */
	uint32_t threshold;         /* X */
};

/* ---- numbers ---- */

struct pl_efm_stat {
	uint64_t n, sum, least, most;
};

/* Blocks of a square wave by their length, rounded up to a power of two: 32 and less, to 65536.
 * `near`: at most X above the power below, where reordering or a duplicate can have put them. */
#define PL_EFM_CLASSES 12u
struct pl_efm_blocks {
	uint64_t near[PL_EFM_CLASSES], near_packets[PL_EFM_CLASSES];
	uint64_t far[PL_EFM_CLASSES], far_packets[PL_EFM_CLASSES];
	uint64_t longer; /* blocks longer than the longest class */
};

/* State of reading a square wave. The block in which reading begins is not counted. */
struct pl_efm_square {
	bool begun, first, turning;
	uint8_t colour;
	uint32_t count, next, past;
	struct pl_efm_blocks blocks;
};

void pl_efm_square_take(struct pl_efm_square *s, unsigned int colour, uint32_t threshold);
/* Marks that the following packets belong to another wave: the count of the present block is
 * dropped. */
void pl_efm_square_break(struct pl_efm_square *s);

/* Returns the N that fits most blocks; 0: no blocks. */
uint32_t pl_efm_square_of(const struct pl_efm_blocks *b);

struct pl_efm_loss {
	uint64_t blocks; /* blocks that count */
	uint64_t sent, packets;
	uint64_t merged; /* blocks of them longer than N: a whole block between two was lost */
	bool is_square;  /* it has blocks, and most are longer than N/2 and not above N + X */
};

/* Loss of blocks of N: a block of p packets lost N - p, one longer than N + X lost 3N - p, because
 * the block between was lost (RFC 9506 3.2.3.1, which has "longer than N": the few that are longer
 * by reordering have their loss in the block beside). Blocks above 2N are left out. */
struct pl_efm_loss pl_efm_loss_of(const struct pl_efm_blocks *b, uint32_t square);
double pl_efm_loss_ratio(const struct pl_efm_loss *l);

/* Returns the loss behind `part`, of successive losses that make `whole` together. */
static inline double pl_efm_rest(double whole, double part)
{
	return part < 1 ? (whole - part) / (1 - part) : 0;
}

/* ---- a direction, a connection ---- */

/* Trains of packets with the round-trip loss bit. Every second one is the reflection of the one
 * before; there are sums for both possible beginnings. */
struct pl_efm_trains {
	uint64_t now; /* packets of the present train */
	uint64_t last, n;
	uint64_t generated[2], reflected[2], negative[2];
};

struct pl_efm_way {
	uint64_t packets, first_ns, last_ns;
	uint64_t loss, echo, congested; /* packets with L, with E, with CE of IP */
	/* the spin bit */
	bool has_spin, taken;
	uint8_t spin, taken_spin;
	uint32_t run, marked; /* packets of the run of a value; those of them with T */
	uint64_t taken_ns;    /* time of the last edge that was taken */
	uint64_t edges, single, rejected, paused, period_marked;
	uint64_t copied, inverted; /* edges whose next edge in the other direction had the same
				    * value; those with another */
	struct pl_efm_stat spin_rtt, spin_half;
	struct pl_efm_trains trains;
	/* the delay bit */
	bool has_sample;
	uint64_t sample_ns, far_apart;
	struct pl_efm_stat delay_rtt, delay_half;
	struct pl_efm_square square, reflection;
};

/* A change of the spin bit; broken: the packets before it have another connection id. */
struct pl_efm_edge {
	uint64_t ns;
	uint32_t marked; /* packets with T since the edge before */
	uint8_t way, spin;
	bool broken;
};

#define PL_EFM_EDGES 256u

struct pl_efm {
	struct pl_efm_way ways[2];
	bool from_start;       /* nothing came before: the first train of T is generated */
	uint64_t handshake_ns; /* round-trip time of the handshake; 0: not seen */
	uint64_t delay_rtt_ns; /* last round-trip time by the delay bit; 0: none */
	bool has_last;         /* the last edge that was taken, in either direction, is set */
	uint8_t last_way, last_spin;
	uint64_t last_ns;
	uint32_t n;
	struct pl_efm_edge edges[PL_EFM_EDGES]; /* edges that are not judged yet */
};

/* Takes a packet with the bits in `byte`; congested: it has CE. Times must ascend over both
 * directions: an earlier one counts as the last one. */
void pl_efm_take(struct pl_efm *e, const struct pl_efm_config *config, unsigned int way,
	uint64_t time_ns, uint8_t byte, bool congested);
/* Handles a new connection id in this direction: spin bit, delay samples and blocks begin again. */
void pl_efm_break(struct pl_efm *e, unsigned int way, uint64_t time_ns);
/* Judges the remaining edges; the results are complete then. */
void pl_efm_finish(struct pl_efm *e);

/* ---- results ---- */

enum pl_efm_spins {
	PL_EFM_SPINS,
	PL_EFM_FEW,      /* fewer than 8 packets, or one edge */
	PL_EFM_CONSTANT, /* always the same value: the spin bit is off */
	PL_EFM_RANDOM,   /* values at random: the spin bit is off */
	PL_EFM_UNSET,    /* the configuration has no spin bit */
};
const char *pl_efm_spins_name(enum pl_efm_spins spins);

#define PL_EFM_HAS_ULOSS   0x001u
#define PL_EFM_HAS_ELOSS   0x002u
#define PL_EFM_HAS_DLOSS   0x004u
#define PL_EFM_HAS_TQLOSS  0x008u
#define PL_EFM_HAS_REVERSE 0x010u
#define PL_EFM_HAS_HALF    0x020u
#define PL_EFM_HAS_TRIP    0x040u
#define PL_EFM_HAS_ECHO    0x080u

/* Notes to results: name, help. */
#define PL_EFM_NOTES(X)                                                                                \
	X(0, NO_SPIN, "no-spin", "the spin bit is off: no round-trip time by it")                      \
	X(1, NO_SQUARE, "no-square",                                                                   \
		"the square bit has no blocks of a length: not in use, or --square is wrong; no loss " \
		"by it")                                                                               \
	X(2, LOWERED, "lowered",                                                                       \
		"more loss before the observer than from end to end, so it is told as that: the "      \
		"observer itself lost packets, or they came reordered")                                \
	X(3, SHORT, "short", "below four round-trip times: loss of two bits is not compared")          \
	X(4, MERGED, "merged", "whole blocks were lost")

#define PL_EFM_NOTE_ENUM(bit, id, name, help) PL_EFM_NOTE_##id = 1u << (bit),
enum { PL_EFM_NOTES(PL_EFM_NOTE_ENUM) };
#undef PL_EFM_NOTE_ENUM

struct pl_efm_result {
	enum pl_efm_spins spins;
	bool is_client, is_server; /* role of this direction's sender; neither: not known */
	bool by_delay;             /* rtt and half are from the delay bit */
	struct pl_efm_stat rtt, half;
	uint32_t square; /* N */
	uint64_t blocks, trains;
	uint32_t has, notes;
	/* reverse: from end to end in the other direction; half_loss: to the receiver and back;
	 * trip: of a round trip; echo: packets that came with CE, by the receiver. */
	double uloss, eloss, dloss, tqloss, reverse, half_loss, trip, echo;
};

/* Makes the result of a direction, when the connection is finished. */
void pl_efm_result(struct pl_efm_result *ret, const struct pl_efm *e,
	const struct pl_efm_config *config, unsigned int way);

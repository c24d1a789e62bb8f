/* SPDX-License-Identifier: BSD-2-Clause */
/* Results of a connection (RFC 9506 2.2.6, 3.1 to 3.5). */
#include "mark/efm.h"

#include <stddef.h>

#define FEW_PACKETS    8u
/* Random values change at every second packet, and half of their runs have one packet. */
#define RANDOM_PACKETS 32u
#define AT_RANDOM(part, whole)                                                                     \
	(10 * (part) > 3 * (uint64_t)(whole) && 10 * (part) < 7 * (uint64_t)(whole))
/* Least number of edge pairs that show directions to follow no one rule. */
#define UNRULED_PAIRS 8u

#define AVERAGE_RTTS  4 /* RFC 9506 3.3.2.1 */

const char *pl_efm_spins_name(enum pl_efm_spins spins)
{
	static const char *const names[] = { [PL_EFM_SPINS] = "spins",
		[PL_EFM_FEW] = "few",
		[PL_EFM_CONSTANT] = "constant",
		[PL_EFM_RANDOM] = "random",
		[PL_EFM_UNSET] = NULL };

	return names[spins];
}

/* Evidence that the receiver of direction `way` is the server: a server copies the spin value, a
 * client inverts it. */
static uint64_t as_server(const struct pl_efm *e, unsigned int way)
{
	return e->ways[way].copied + e->ways[way ^ 1].inverted;
}

static bool is_unruled(const struct pl_efm *e)
{
	const uint64_t a = as_server(e, 0), b = as_server(e, 1);
	const uint64_t less = a < b ? a : b;

	return a + b >= UNRULED_PAIRS && 4 * less > a + b;
}

static enum pl_efm_spins spins_of(
	const struct pl_efm *e, const struct pl_efm_config *config, unsigned int way)
{
	const struct pl_efm_way *w = &e->ways[way];

	if (config->masks[PL_EFM_SPIN] == 0)
		return PL_EFM_UNSET;
	if (w->packets < FEW_PACKETS)
		return PL_EFM_FEW;
	if (w->edges == 0)
		return PL_EFM_CONSTANT;
	if (w->edges == 1)
		return PL_EFM_FEW;
	if (w->packets >= RANDOM_PACKETS && AT_RANDOM(w->edges, w->packets) &&
		AT_RANDOM(w->single, w->edges))
		return PL_EFM_RANDOM;
	return is_unruled(e) ? PL_EFM_RANDOM : PL_EFM_SPINS;
}

static void put_times(struct pl_efm_result *r, const struct pl_efm *e, unsigned int way)
{
	const struct pl_efm_way *w = &e->ways[way];
	const uint64_t here = as_server(e, way), there = as_server(e, way ^ 1);

	/* The delay bit is more exact, where it has a sample. */
	r->by_delay = w->delay_rtt.n > 0 || w->delay_half.n > 0;
	if (r->by_delay) {
		r->rtt = w->delay_rtt;
		r->half = w->delay_half;
	} else if (r->spins == PL_EFM_SPINS) {
		r->rtt = w->spin_rtt;
		r->half = w->spin_half;
	}
	if (r->spins == PL_EFM_SPINS && here != there) {
		r->is_client = here > there;
		r->is_server = there > here;
	}
	if (r->spins == PL_EFM_CONSTANT || r->spins == PL_EFM_RANDOM)
		r->notes |= PL_EFM_NOTE_NO_SPIN;
}

/* Returns N of the sender of direction `way`: the configured one, or the length of most of its
 * blocks. */
static uint32_t square_of(
	const struct pl_efm *e, const struct pl_efm_config *config, unsigned int way)
{
	return config->square != 0 ? config->square : pl_efm_square_of(&e->ways[way].square.blocks);
}

/* Computes the loss before the observer in a direction, by the square bit. False when the direction
 * has no square wave. */
static bool upstream(double *ret, const struct pl_efm *e, const struct pl_efm_config *config,
	unsigned int way, struct pl_efm_loss *ret_loss)
{
	*ret_loss = pl_efm_loss_of(&e->ways[way].square.blocks, square_of(e, config, way));
	*ret = pl_efm_loss_ratio(ret_loss);
	return config->masks[PL_EFM_SQUARE] != 0 && ret_loss->is_square;
}

/* Computes the loss from the peer to the sender of `way` and on to the observer, by the reflection
 * bit: blocks have the peer's N. */
static bool three_quarters(
	double *ret, const struct pl_efm *e, const struct pl_efm_config *config, unsigned int way)
{
	uint32_t square = square_of(e, config, way ^ 1);
	struct pl_efm_loss loss;

	if (square == 0)
		square = square_of(e, config, way);
	/* Without N the number of sent packets is not known. */
	if (square == 0)
		return false;
	loss = pl_efm_loss_of(&e->ways[way].reflection.blocks, square);
	*ret = pl_efm_loss_ratio(&loss);
	return config->masks[PL_EFM_REFLECTION] != 0 && loss.is_square;
}

/* Computes the loss by the loss event bit and, together with the square bit, the loss behind the
 * observer. */
static void put_events(struct pl_efm_result *r, const struct pl_efm_way *w, uint64_t rtt_ns)
{
	r->eloss = (double)w->loss / (double)w->packets;
	r->has |= PL_EFM_HAS_ELOSS;
	if ((r->has & PL_EFM_HAS_ULOSS) == 0)
		return;
	if (rtt_ns != 0 && (w->last_ns - w->first_ns) / AVERAGE_RTTS < rtt_ns) {
		r->notes |= PL_EFM_NOTE_SHORT;
		return;
	}
	if (r->uloss > r->eloss) {
		r->uloss = r->eloss;
		r->notes |= PL_EFM_NOTE_LOWERED;
	}
	r->dloss = pl_efm_rest(r->eloss, r->uloss);
	r->has |= PL_EFM_HAS_DLOSS;
}

static void put_reflections(struct pl_efm_result *r, const struct pl_efm *e,
	const struct pl_efm_config *config, unsigned int way)
{
	const bool has_u = (r->has & PL_EFM_HAS_ULOSS) != 0;
	struct pl_efm_loss loss;
	double other_tq, other_u;

	if (three_quarters(&r->tqloss, e, config, way)) {
		r->has |= PL_EFM_HAS_TQLOSS;
		if (has_u) {
			r->reverse = pl_efm_rest(r->tqloss, r->uloss);
			r->has |= PL_EFM_HAS_REVERSE;
		}
	}
	if (!has_u || !three_quarters(&other_tq, e, config, way ^ 1))
		return;
	r->half_loss = pl_efm_rest(other_tq, r->uloss);
	r->has |= PL_EFM_HAS_HALF;
	if ((r->has & PL_EFM_HAS_DLOSS) != 0 || !upstream(&other_u, e, config, way ^ 1, &loss))
		return;
	r->dloss = pl_efm_rest(r->half_loss, other_u);
	r->has |= PL_EFM_HAS_DLOSS;
}

/* Computes the loss of a round trip. A reflection is not longer than the train it reflects: that
 * tells which trains are reflections. */
static void put_trains(struct pl_efm_result *r, const struct pl_efm_trains *t, bool from_start)
{
	unsigned int from = 0;

	r->trains = t->n;
	if (!from_start && (t->negative[0] == 0) == (t->negative[1] == 0))
		return;
	if (!from_start)
		from = t->negative[0] != 0;
	if (t->generated[from] == 0)
		return;
	r->trip = 1 - (double)t->reflected[from] / (double)t->generated[from];
	r->has |= PL_EFM_HAS_TRIP;
}

void pl_efm_result(struct pl_efm_result *ret, const struct pl_efm *e,
	const struct pl_efm_config *config, unsigned int way)
{
	const struct pl_efm_way *w = &e->ways[way];
	struct pl_efm_loss loss;

	*ret = (struct pl_efm_result){ .spins = spins_of(e, config, way),
		.square = square_of(e, config, way) };
	if (w->packets == 0)
		return;
	put_times(ret, e, way);
	if (upstream(&ret->uloss, e, config, way, &loss)) {
		ret->has |= PL_EFM_HAS_ULOSS;
		ret->blocks = loss.blocks;
		ret->notes |= loss.merged > 0 ? PL_EFM_NOTE_MERGED : 0u;
	} else if (loss.blocks > 0) {
		ret->notes |= PL_EFM_NOTE_NO_SQUARE;
	}
	if (config->masks[PL_EFM_LOSS] != 0 && (ret->notes & PL_EFM_NOTE_NO_SQUARE) == 0)
		put_events(ret, w, ret->rtt.n > 0 ? ret->rtt.sum / ret->rtt.n : 0);
	put_reflections(ret, e, config, way);
	if (config->masks[PL_EFM_ROUND_TRIP] != 0 && ret->spins == PL_EFM_SPINS)
		put_trains(ret, &w->trains, e->from_start);
	if (config->masks[PL_EFM_ECN_ECHO] != 0) {
		ret->echo = (double)w->echo / (double)w->packets;
		ret->has |= PL_EFM_HAS_ECHO;
	}
}

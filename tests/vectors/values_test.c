/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lengths are never believed. Every field that a packet of the vectors could have (one, two and
 * four bytes wide, at every place) is set in turn to 0, 1, the half, the largest, the largest less
 * one, and its value less and more one. Whatever the packet then is: nothing outside it is read,
 * what is decoded is sound, the fast path comes to what the general way does, and the account
 * balance. Run as: values_test FOLDER
 */
#include <ftw.h>

#include "../fuzz/records.h"
#include "base/test.h"
#include "netio/port.h"

/* A damaged datagram may hold many short reports. */
enum { PATHS = 4096, HOPS = 65536, FILES_MAX = 512 };

static char *files[FILES_MAX];
static size_t nfiles;

static int gather(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	size_t len = strlen(path);

	(void)st;
	(void)ftw;
	if (type == FTW_F && len > 5 && strcmp(path + len - 5, ".pcap") == 0 && nfiles < FILES_MAX)
		files[nfiles++] = strdup(path);
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void no_flush(struct pl_record_batch *batch, void *arg)
{
	(void)batch;
	(void)arg;
	must(false);
}

struct side {
	struct pl_decode *decode;
	struct pl_record_batch out;
};

static void side_init(struct side *s, bool general)
{
	static const struct pl_profile profile = {
		.dscp_set = true, .dscp_value = 0x17, .dscp_mask = 0x3f
	};
	static const struct pl_decode_options options = {
		.profiles = &profile, .n_profiles = 1, .max_exporters = 256, .max_paths = 256
	};

	must(pl_decode_new(&s->decode, &options) == 0);
	must(pl_record_batch_init(&s->out, PATHS, HOPS) == 0);
	s->out.flush = no_flush;
	if (general)
		only_general(s->decode);
}

static void side_done(struct side *s)
{
	check_account(s->decode);
	pl_decode_free(s->decode);
	pl_record_batch_done(&s->out);
}

static void decode_both(struct side side[2], const struct pl_packet *packet)
{
	static struct pl_batch batch;
	struct pl_outcome got[2];

	for (int i = 0; i < 2; i++) {
		batch.n = 1;
		batch.pkts[0] = *packet;
		pl_record_batch_clear(&side[i].out);
		pl_decode_batch(side[i].decode, &batch, &side[i].out);
		got[i] = pl_decode_outcomes(side[i].decode)[0];
		check_batch(&side[i].out);
	}
	must(got[0].verdict == got[1].verdict && got[0].notes == got[1].notes);
	must(side[0].out.n_paths == side[1].out.n_paths);
	must(side[0].out.n_hops == side[1].out.n_hops);
	must(memcmp(side[0].out.paths, side[1].out.paths,
		     side[0].out.n_paths * sizeof(struct pl_path)) == 0);
	must(memcmp(side[0].out.hops, side[1].out.hops,
		     side[0].out.n_hops * sizeof(struct pl_hop)) == 0);
}

/* The i-th value for a field that holds `true_value` now. */
static uint32_t value_of(unsigned int i, unsigned int width, uint32_t true_value)
{
	const uint32_t max = width == 4 ? UINT32_MAX : (1u << 8 * width) - 1;
	const uint32_t values[] = { 0, 1, max / 2 + 1, max - 1, max, true_value - 1,
		true_value + 1 };

	return values[i] & max;
}

#define N_VALUES 7

static unsigned int set_fields(struct side side[2], const struct pl_packet *packet)
{
	/* In a block of exactly its length, so that a read of one byte more is seen. */
	uint8_t *block = malloc(packet->len > 0 ? packet->len : 1);
	struct pl_packet p = *packet;
	unsigned int n = 0;

	must(block != NULL);
	memcpy(block, packet->data, packet->len);
	p.data = block;
	for (unsigned int width = 1; width <= 4; width *= 2) {
		for (uint32_t at = 0; at + width <= packet->len; at++) {
			uint32_t old = 0;

			for (unsigned int b = 0; b < width; b++)
				old = old << 8 | packet->data[at + b];
			for (unsigned int i = 0; i < N_VALUES; i++) {
				uint32_t v = value_of(i, width, old);

				for (unsigned int b = width; b-- > 0; v >>= 8)
					block[at + b] = (uint8_t)v;
				decode_both(side, &p);
				n++;
			}
			memcpy(block + at, packet->data + at, width);
		}
	}
	free(block);
	return n;
}

static void run_file(const char *folder, const char *path)
{
	static struct pl_batch batch;
	struct pl_port *port = NULL;
	struct pl_diag diag = { 0 };
	struct side side[2];
	unsigned int packets = 0, tried = 0;

	if (pl_port_open(&port, path, PL_PORT_RECV, NULL, &diag) < 0) {
		ok(false, "%s: %s", path, diag.text);
		return;
	}
	side_init(&side[0], false);
	side_init(&side[1], true);
	while (pl_port_recv(port, &batch, 0, &diag) > 0) {
		for (uint32_t i = 0; i < batch.n; i++, packets++)
			tried += set_fields(side, &batch.pkts[i]);
		pl_port_release(port, &batch);
	}
	pl_port_close(port);
	side_done(&side[0]);
	side_done(&side[1]);
	ok(packets > 0 && tried > 0, "%s: %u packets, %u values", path + strlen(folder) + 1,
		packets, tried);
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	ok(nftw(argv[1], gather, 16, FTW_PHYS) == 0 && nfiles > 0, "there are vectors");
	qsort(files, nfiles, sizeof(files[0]), by_name);
	for (size_t i = 0; i < nfiles; i++) {
		run_file(argv[1], files[i]);
		free(files[i]);
	}
	return pl_test_done();
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every vector through the decoder: each packet gets the verdict and the notes that its source
 * says, and cut after every byte it gets nothing it does not hold. The captures and what is
 * expected of them are written by tools/mkvector at build time; run as: vectors_test FOLDER
 */
#include <ftw.h>

#include "base/test.h"
#include "decode/decode.h"
#include "netio/port.h"

enum { PATHS = 64, HOPS = 512, VECTORS_MAX = 512, PACKET_MAX = 65536 };

static char *files[VECTORS_MAX];
static size_t nfiles;

static int gather(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	size_t len = strlen(path);

	(void)st;
	(void)ftw;
	if (type == FTW_F && len > 5 && strcmp(path + len - 5, ".pcap") == 0 &&
		nfiles < VECTORS_MAX)
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
	printf("Bail out! a vector with more records than the test has room for\n");
	exit(1);
}

/* A fresh decoder each time: sequence state must not leak from one packet into the next one's
 * verdict. */
static struct pl_decode *fresh_decoder(void)
{
	/* The second is for vectors in INTCollector's dialect, whose generator sends from this
	 * address. */
	static const struct pl_profile profiles[] = {
		{ .dscp_set = true, .dscp_value = 0x17, .dscp_mask = 0x3f },
		{ .prefix = { { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1 } },
			.prefix_bits = 128,
			.dscp_set = true,
			.dscp_value = 0x17,
			.dscp_mask = 0x3f,
			.hints.dialect = PL_DIALECT_INTCOLLECTOR },
	};
	static const struct pl_decode_options options = {
		.profiles = profiles,
		.n_profiles = sizeof(profiles) / sizeof(profiles[0]),
		.max_exporters = 16,
		.max_paths = 16,
	};
	struct pl_decode *d = NULL;

	if (pl_decode_new(&d, &options) != 0) {
		printf("Bail out! no memory\n");
		exit(1);
	}
	return d;
}

static struct pl_outcome decode_one(const struct pl_packet *packet, struct pl_record_batch *out)
{
	struct pl_decode *d = fresh_decoder();
	struct pl_batch batch = { .n = 1 };
	struct pl_outcome outcome;

	batch.pkts[0] = *packet;
	pl_record_batch_clear(out);
	pl_decode_batch(d, &batch, out);
	outcome = pl_decode_outcomes(d)[0];
	pl_decode_free(d);
	return outcome;
}

/* The words of an expectation: a verdict, then notes that must be among those given. */
static bool as_expected(char *words, const struct pl_outcome *outcome, char *ret_said, size_t cap)
{
	char *save = NULL, *word = strtok_r(words, " \n", &save);
	bool good = word != NULL &&
		    strcmp(word, pl_verdict_name((enum pl_verdict)outcome->verdict)) == 0;
	size_t n = (size_t)snprintf(
		ret_said, cap, "%s", pl_verdict_name((enum pl_verdict)outcome->verdict));

	for (unsigned int i = 0; i < PL_N_MAX; i++) {
		if ((outcome->notes >> i & 1) != 0 && n < cap)
			n += (size_t)snprintf(
				ret_said + n, cap - n, " %s", pl_note_name((enum pl_note)i));
	}
	while (good && (word = strtok_r(NULL, " \n", &save)) != NULL) {
		bool noted = false;

		for (unsigned int i = 0; i < PL_N_MAX; i++)
			noted |= (outcome->notes >> i & 1) != 0 &&
				 strcmp(word, pl_note_name((enum pl_note)i)) == 0;
		good = noted;
	}
	return good;
}

/* Fields of a kind by what they are; sizes come from the list itself. */
static const size_t path_sizes[] = {
#define PL_PATH_FIELD(off, id, type, ...) sizeof(type),
#define PL_PATH_ALIAS(off, type, ...)     sizeof(type),
#include "record/fields.def"
};
static const size_t hop_sizes[] = {
#define PL_HOP_FIELD(off, id, type, ...) sizeof(type),
#define PL_HOP_ALIAS(off, type, ...)     sizeof(type),
#include "record/fields.def"
};

/* Fields that a shorter packet may tell differently: they depend on how many hops there are. */
static bool depends_on_length(const char *name)
{
	static const char *const names[] = { "path_id", "latency_ns", "hop_count", "flags", "index",
		"link_latency_ns", "clock", "report_id", "" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(name, names[i]) == 0)
			return true;
	}
	return false;
}

/* The name of the first optional field that `part` has and `whole` lacks or tells otherwise; NULL =
 * none. */
static const char *invented(enum pl_record_kind kind, const void *part, uint32_t part_present,
	const void *whole, uint32_t whole_present)
{
	const size_t *sizes = kind == PL_KIND_PATH ? path_sizes : hop_sizes;
	const struct pl_field *fields;
	size_t n;

	fields = pl_fields(kind, &n);
	for (size_t i = 0; i < n; i++) {
		const struct pl_field *f = &fields[i];

		if (f->present == 0 || (part_present & f->present) == 0 ||
			depends_on_length(f->name))
			continue;
		if ((whole_present & f->present) == 0 ||
			memcmp((const char *)part + f->offset, (const char *)whole + f->offset,
				sizes[i]) != 0)
			return f->name;
	}
	return NULL;
}

/* What a cut packet still tells is what the whole one tells. Its hops are the newest, which stand
 * last. */
static const char *compare(const struct pl_record_batch *cut, uint64_t notes,
	const struct pl_record_batch *whole, bool damaged)
{
	for (uint32_t i = 0; i < cut->n_paths && !damaged; i++) {
		const struct pl_path *p = &cut->paths[i], *q = &whole->paths[i];
		const char *name;

		if (i >= whole->n_paths)
			return "a report too many";
		if (p->hop_count > q->hop_count)
			return "a hop too many";
		for (unsigned int h = 1; h <= p->hop_count; h++) {
			const struct pl_hop *a = &cut->hops[cut->first_hop[i] + p->hop_count - h];
			const struct pl_hop *b =
				&whole->hops[whole->first_hop[i] + q->hop_count - h];

			/* Of a path that is not there the reporting node itself remains. */
			if (a->node == p->node && a->node != b->node)
				continue;
			name = invented(PL_KIND_HOP, a, a->present, b, b->present);
			if (name != NULL)
				return name;
		}
		/* Without its INT header the inner packet is told as it is on the wire, without its
		 * inside a tunnel is. */
		if (p->hop_count < q->hop_count || p->mode != q->mode ||
			(notes & PL_NOTE_BIT(INNER_CUT)) != 0 ||
			(q->present & ~p->present & PL_PATH_HAS_dialect) != 0)
			continue;
		name = invented(PL_KIND_PATH, p, p->present, q, q->present);
		if (name != NULL)
			return name;
	}
	return NULL;
}

/* In a block of exactly its length, so that a read of one byte more is seen. */
static void truncate_packet(const char *name, unsigned int number, const struct pl_packet *packet,
	const struct pl_record_batch *whole, bool damaged, bool on_wire)
{
	struct pl_record_batch cut;
	struct pl_outcome outcome;
	const char *fault = NULL;
	uint32_t len;

	if (pl_record_batch_init(&cut, PATHS, HOPS) != 0)
		exit(1);
	cut.flush = no_flush;
	for (len = 0; len < packet->len && fault == NULL; len++) {
		struct pl_packet p = *packet;
		uint8_t *block = malloc(len > 0 ? len : 1);

		memcpy(block, packet->data, len);
		p.data = block;
		p.len = len;
		if (on_wire)
			p.wire_len = len;
		outcome = decode_one(&p, &cut);
		fault = compare(&cut, outcome.notes, whole, damaged);
		free(block);
	}
	ok(fault == NULL, "%s, packet %u, %s after every byte%s%s", name, number,
		on_wire ? "ended" : "cut", fault != NULL ? ": invented " : "",
		fault != NULL ? fault : "");
	if (fault != NULL)
		printf("# at byte %u of %u\n", len - 1, packet->len);
	pl_record_batch_done(&cut);
}

static void run_file(const char *folder, const char *path)
{
	static struct pl_batch batch;
	struct pl_record_batch whole;
	struct pl_port *port = NULL;
	struct pl_diag diag = { 0 };
	char expect_path[4096], said[1024], name[512];
	char line[512];
	unsigned int number = 0;
	FILE *expect;

	snprintf(name, sizeof(name), "%.*s", (int)(strlen(path) - strlen(folder) - 6),
		path + strlen(folder) + 1);
	snprintf(expect_path, sizeof(expect_path), "%.*sexpect", (int)(strlen(path) - 4), path);
	expect = fopen(expect_path, "r");
	if (!ok(expect != NULL, "%s: expectations", name))
		return;
	if (!ok(pl_record_batch_init(&whole, PATHS, HOPS) == 0, "%s: memory", name) ||
		!ok(pl_port_open(&port, path, PL_PORT_RECV, NULL, &diag) == 0, "%s: %s", name,
			diag.text))
		goto done;
	whole.flush = no_flush;
	while (pl_port_recv(port, &batch, 0, &diag) > 0) {
		for (uint32_t i = 0; i < batch.n; i++) {
			struct pl_outcome outcome = decode_one(&batch.pkts[i], &whole);

			/* What a fault suppresses may show while it is still cut off, and what is
			 * told from the whole only (a lying version, INT before a report) is not
			 * told from a part: then only reads are checked, by the sanitizer. */
			const uint64_t whole_only =
				PL_NOTE_BIT(REPORT_VERSION_LIES) | PL_NOTE_BIT(INSTRUMENTED);
			bool damaged = (outcome.verdict != PL_V_OK &&
					       outcome.verdict != PL_V_INT_TRUNCATED) ||
				       (outcome.notes & whole_only) != 0;

			number++;
			if (!ok(fgets(line, sizeof(line), expect) != NULL,
				    "%s: packet %u is expected", name, number))
				break;
			line[strcspn(line, "\n")] = '\0';
			snprintf(expect_path, sizeof(expect_path), "%s", line);
			ok(as_expected(line, &outcome, said, sizeof(said)),
				"%s, packet %u: wanted \"%s\", got \"%s\"", name, number,
				expect_path, said);
			truncate_packet(name, number, &batch.pkts[i], &whole, damaged, false);
			truncate_packet(name, number, &batch.pkts[i], &whole, damaged, true);
		}
		pl_port_release(port, &batch);
	}
	ok(number > 0 && fgets(line, sizeof(line), expect) == NULL, "%s: every packet was read",
		name);
done:
	if (port != NULL)
		pl_port_close(port);
	pl_record_batch_done(&whole);
	fclose(expect);
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

/* SPDX-License-Identifier: BSD-2-Clause */
/* The capture reader: all formats, truncation at every byte, wrong lengths. Interoperation with
 * libpcap: port_test.c. */
#include "netio/test_capture.h"

#include <errno.h>

#include <zlib.h>

static void test_pcap_forms(void)
{
	static const struct {
		const char *name;
		uint32_t magic;
		bool little;
		uint64_t ns;
	} forms[] = {
		{ "microseconds, big-endian", 0xa1b2c3d4, false, 1000 },
		{ "microseconds, little-endian", 0xa1b2c3d4, true, 1000 },
		{ "nanoseconds, big-endian", 0xa1b23c4d, false, 1 },
		{ "nanoseconds, little-endian", 0xa1b23c4d, true, 1 },
	};

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		struct outcome o;
		struct file f;

		begin(&f, forms[i].little);
		pcap_header(&f, forms[i].magic, 1);
		pcap_packet(&f, 0xfffffffe, 123456, 60, 1500);
		pcap_packet(&f, 1700000000, 999999, 0, 0);
		pcap_packet(&f, 1700000001, 0, 1, 1);
		o = walk(f.bytes, f.b.len, 0);
		eq(o.packets, 3, "%s: packets", forms[i].name);
		eq(o.end, -ENODATA, "%s: end", forms[i].name);
		eq(o.first_ts, 0xfffffffeu * UINT64_C(1000000000) + 123456 * forms[i].ns,
			"%s: time", forms[i].name);
		eq(o.first_len, 60);
		eq(walk(f.bytes, f.b.len, 1).digest, o.digest, "%s: byte by byte", forms[i].name);
		eq(walk(f.bytes, f.b.len, 7).digest, o.digest, "%s: in sevens", forms[i].name);
	}
}

static void test_kuznetzov(void)
{
	struct outcome o;
	struct file f;

	begin(&f, true);
	pcap_header(&f, 0xa1b2cd34, 1);
	put32(&f, 5);
	put32(&f, 6);
	put32(&f, 4);
	put32(&f, 4);
	put64(&f, 0);
	put_fill(&f, 4, 1);
	o = walk(f.bytes, f.b.len, 0);
	eq(o.packets, 1, "longer packet headers");
	eq(o.end, -ENODATA);
	eq(o.first_ts, 5000006000u);
}

static void test_links(void)
{
	static const struct {
		uint32_t linktype;
		uint32_t family; /* first four bytes, big-endian */
		uint8_t link;
		uint32_t len;
	} rows[] = {
		{ 1, 0, PL_LINK_ETHERNET, 24 },
		{ 12, 0, PL_LINK_RAW_IP, 24 },
		{ 14, 0, PL_LINK_RAW_IP, 24 },
		{ 101, 0, PL_LINK_RAW_IP, 24 },
		{ 228, 0, PL_LINK_RAW_IP, 24 },
		{ 229, 0, PL_LINK_RAW_IP, 24 },
		{ 113, 0, PL_LINK_SLL, 24 },
		{ 276, 0, PL_LINK_SLL2, 24 },
		{ 105, 0, PL_LINK_UNKNOWN, 24 },
		{ 0x10000001, 0, PL_LINK_ETHERNET, 24 },
		{ 0, 0x02000000, PL_LINK_RAW_IP, 20 },
		{ 0, 0x00000002, PL_LINK_RAW_IP, 20 },
		{ 0, 0x1e000000, PL_LINK_RAW_IP, 20 },
		{ 0, 0x05000000, PL_LINK_UNKNOWN, 24 },
		{ 108, 0x00000018, PL_LINK_RAW_IP, 20 },
		{ 108, 0, PL_LINK_UNKNOWN, 24 },
		{ 65536 + 1, 0, PL_LINK_ETHERNET, 24 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct outcome o;
		struct file f;

		begin(&f, false);
		pcap_header(&f, 0xa1b2c3d4, rows[i].linktype);
		put64(&f, 0);
		put32(&f, 24);
		put32(&f, 24);
		put32(&f, rows[i].family);
		pl_put_zero(&f.b, 20);
		o = walk(f.bytes, f.b.len, 0);
		eq(o.first_link, rows[i].link, "link type %u, first word %08x", rows[i].linktype,
			rows[i].family);
		eq(o.first_len, rows[i].len, "link type %u: length", rows[i].linktype);
	}
}

static void test_loopback_of_three_bytes(void)
{
	struct outcome o;
	struct file f;

	begin(&f, false);
	pcap_header(&f, 0xa1b2c3d4, 0);
	pcap_packet(&f, 0, 2, 3, 3);
	o = walk(f.bytes, f.b.len, 0);
	eq(o.first_link, PL_LINK_UNKNOWN, "too short for an address family");
	eq(o.first_len, 3);
}

static void test_ng_clocks(void)
{
	static const struct {
		int resolution;
		int64_t offset;
		uint64_t ticks, ns;
	} rows[] = {
		{ -1, 0, 1700000000123456, 1700000000123456000 },
		{ 6, 0, 1, 1000 },
		{ 9, 0, 1700000000123456789, 1700000000123456789 },
		{ 0, 0, 1700000000, 1700000000000000000 },
		{ 3, 0, 1700000000123, 1700000000123000000 },
		{ 8, 0, 15, 150 },
		{ 12, 0, 1700000000123456, 1700000000123 },
		{ 28, 0, UINT64_MAX, 1 },
		{ 29, 0, UINT64_MAX, 0 },
		{ 127, 0, 1, 0 },
		{ 0x80, 0, 17, 17000000000 },
		{ 0x80 | 10, 0, 1536, 1500000000 },
		{ 0x80 | 32, 0, UINT64_C(0x6553f10080000000), 1700000000500000000 },
		{ 0x80 | 63, 0, UINT64_MAX, 1999999999 },
		{ 0x80 | 93, 0, UINT64_MAX, 1 },
		{ 0x80 | 94, 0, UINT64_MAX, 0 },
		{ 0x80 | 127, 0, UINT64_MAX, 0 },
		{ 9, 100, 5, 100000000005 },
		{ 9, -1, 1000000005, 5 },
		{ 9, -2, 1000000005, 0 },        /* before 1970 */
		{ 9, INT64_MAX, UINT64_MAX, 0 }, /* beyond 2554 */
		{ 9, INT64_MIN, 0, 0 },
		{ 0, 0, UINT64_MAX, 0 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		for (int little = 0; little < 2; little++) {
			struct outcome o;
			struct file f;

			begin(&f, little != 0);
			ng_section(&f);
			ng_interface(&f, 1, 0, rows[i].resolution, rows[i].offset);
			ng_packet(&f, 0, rows[i].ticks, 14, 14);
			o = walk(f.bytes, f.b.len, 0);
			eq(o.packets, 1);
			eq(o.first_ts, rows[i].ns, "resolution %#x, offset %" PRId64 ", row %zu",
				(unsigned int)rows[i].resolution, rows[i].offset, i);
		}
	}
}

static void make_ng(struct file *f)
{
	begin(f, true);
	ng_section(f);
	ng_unknown(f, 4, 0);
	ng_interface(f, 1, 65535, 9, 0);
	ng_interface(f, 101, 0, -1, 0);
	ng_packet(f, 0, 1, 33, 33);
	ng_unknown(f, 0xbad, 40);
	ng_packet(f, 1, 2, 20, 200);
	f->little = false;
	ng_section(f);
	ng_interface(f, 276, 0, 3, 0);
	ng_packet(f, 0, 7, 21, 21);
}

static void test_ng_sections(void)
{
	struct outcome o;
	struct file f;

	make_ng(&f);
	o = walk(f.bytes, f.b.len, 0);
	eq(o.packets, 3, "two sections, two byte orders, unknown blocks");
	eq(o.end, -ENODATA);
	eq(o.first_ts, 1);
	eq(o.last_ts, 7000000, "the second section's interface");
	/* A new section has no interface 1 of the first one. */
	ng_packet(&f, 1, 9, 4, 4);
	o = walk(f.bytes, f.b.len, 0);
	eq(o.packets, 3);
	eq(o.end, -EBADMSG, "a new section forgets the interfaces");
	ok(strstr(o.text, "interface 1") != NULL && strstr(o.text, "1 are described") != NULL, "%s",
		o.text);
}

static void test_ng_other_packets(void)
{
	struct outcome o;
	struct file f;

	begin(&f, true);
	ng_section(&f);
	ng_interface(&f, 1, 16, -1, 0);
	put32(&f, 3); /* simple: 50 bytes on the wire, cut by the interface's limit */
	put32(&f, 32);
	put32(&f, 50);
	put_fill(&f, 16, 3);
	put32(&f, 32);
	put32(&f, 2); /* obsolete, one drop before it */
	put32(&f, 40);
	put16(&f, 0);
	put16(&f, 1);
	put32(&f, 0);
	put32(&f, 77);
	put32(&f, 5);
	put32(&f, 5);
	put_fill(&f, 5, 9);
	pl_put_zero(&f.b, 3);
	put32(&f, 40);
	o = walk(f.bytes, f.b.len, 0);
	eq(o.packets, 2, "simple and obsolete packet blocks");
	eq(o.end, -ENODATA, "%s", o.text);
	eq(o.first_len, 16);
	eq(o.first_ts, 0, "a simple packet has no time");
	eq(o.last_ts, 77000);
}

static void patch32(struct file *f, size_t at, uint32_t v)
{
	if (f->little)
		v = __builtin_bswap32(v);
	pl_patch_be32(&f->b, at, v);
}

/* The middle one of 3 packets has more bytes captured than on the wire. */
static void test_length_lies(void)
{
	static const uint32_t said[] = { 0, 1, 9 };

	for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++) {
		for (unsigned int ng = 0; ng < 2; ng++) {
			struct outcome o;
			struct file f;

			begin(&f, true);
			if (ng) {
				ng_section(&f);
				ng_interface(&f, 1, 0, 9, 0);
			} else {
				pcap_header(&f, 0xa1b23c4d, 1);
			}
			for (uint32_t k = 1; k <= 3; k++) {
				if (ng)
					ng_packet(&f, 0, k, 10, k == 2 ? said[i] : 10);
				else
					pcap_packet(&f, 0, k, 10, k == 2 ? said[i] : 10);
			}
			o = walk(f.bytes, f.b.len, 0);
			eq(o.end, -ENODATA, "10 captured of %u: %s", said[i], o.text);
			eq(o.packets, 3, "and the packets behind it");
			eq(o.last_ts, 3);
			eq(o.length_lies, 1, "counted");
			eq(o.wire_bytes, 30, "it had what was captured");
		}
	}
}

static void test_pcap_lies(void)
{
	static const struct {
		size_t at;
		uint32_t value;
		unsigned int packets;
		const char *says;
	} rows[] = {
		{ 0, 0x12345678, 0,
			"byte 0: not a pcap or pcapng file: it begins with 78 56 34 12" },
		{ 4, 0x00040003, 0, "pcap version 3.4" },
		{ 24 + 8, 0xffffffff, 0, "byte 32: packet of 4294967295 bytes" },
		{ 24 + 26 + 8, PL_CAPTURE_PACKET_MAX + 1, 1,
			"byte 58: packet of 262145 bytes, more than 262144" },
		{ 24 + 26 + 8, 11, 1, "the file ends within a packet" },
	};
	struct outcome o;
	struct file f;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		begin(&f, true);
		pcap_header(&f, 0xa1b2c3d4, 1);
		pcap_packet(&f, 1, 2, 10, 10);
		pcap_packet(&f, 1, 3, 10, 10);
		patch32(&f, rows[i].at, rows[i].value);
		o = walk(f.bytes, f.b.len, 0);
		eq(o.end, -EBADMSG, "pcap, %#x at %zu", rows[i].value, rows[i].at);
		eq(o.packets, rows[i].packets);
		ok(strstr(o.text, rows[i].says) != NULL, "%s", o.text);
	}
}

static void test_ng_lies(void)
{
	/* Offsets: section 0, interface 28 (total 32), first packet 60 (36 long), second packet
	 * 96. */
	static const struct {
		size_t at;
		uint32_t value;
		unsigned int packets;
		const char *says;
	} rows[] = {
		{ 8, 0x11223344, 0, "without byte-order magic" },
		{ 12, 2, 0, "version 2.0" },
		{ 4, 0, 0, "block length 0" },
		{ 4, 24, 0, "ends with the length" },
		{ 24, 32, 0, "byte 24: block of 28 bytes ends with the length 32" },
		{ 28 + 4, 30, 0, "block length 30" },
		{ 28 + 4, 8, 0, "block length 8" },
		{ 28 + 4, 12, 0, "ends with the length" },
		{ 28 + 4, 0x7ffffffc, 0, "more than 1048576" },
		{ 28 + 16, 0xffff0009, 0, "interface description shorter than its fixed fields" },
		{ 28 + 28, 0, 0, "ends with the length 0" },
		{ 60, 0x0bad, 1, "" }, /* the block's type becomes unknown: skipped */
		{ 60 + 4, 0xfffffffc, 0, "more than 1048576" },
		{ 60 + 4, 32, 0, "ends with the length" },
		{ 60 + 8, 1, 0, "packet of interface 1, but 1 are described" },
		{ 60 + 8, 0xffffffff, 0, "packet of interface 4294967295" },
		{ 60 + 20, 5, 0, "packet of 5 bytes is longer than its block" },
		{ 60 + 32, 0, 0, "ends with the length 0" },
		{ 96 + 8, 7, 1, "byte 104: packet of interface 7" },
		{ 96 + 32, 0xdead, 1, "ends with the length 57005" },
	};
	struct outcome o;
	struct file f;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		begin(&f, true);
		ng_section(&f);
		ng_interface(&f, 1, 0, 9, 0);
		ng_packet(&f, 0, 1, 4, 4);
		ng_packet(&f, 0, 2, 4, 4);
		patch32(&f, rows[i].at, rows[i].value);
		o = walk(f.bytes, f.b.len, 0);
		eq(o.end, rows[i].says[0] != '\0' ? -EBADMSG : -ENODATA, "pcapng, %#x at %zu",
			rows[i].value, rows[i].at);
		eq(o.packets, rows[i].packets, "packets before it");
		ok(strstr(o.text, rows[i].says) != NULL, "%s", o.text);
	}
	/* Captured and original length are both longer than the block. */
	begin(&f, true);
	ng_section(&f);
	ng_interface(&f, 1, 0, 9, 0);
	ng_packet(&f, 0, 1, 4, 4);
	patch32(&f, 60 + 20, 5);
	patch32(&f, 60 + 24, 5);
	o = walk(f.bytes, f.b.len, 0);
	eq(o.end, -EBADMSG);
	ok(strstr(o.text, "longer than its block") != NULL, "%s", o.text);
	/* An unknown block of 4 GiB is skipped as it arrives, not allocated; the file ends within
	 * it. */
	begin(&f, true);
	ng_section(&f);
	ng_unknown(&f, 0xbad, 16);
	patch32(&f, 28 + 4, 0xfffffffc);
	o = walk(f.bytes, f.b.len, 0);
	eq(o.end, -EBADMSG);
	ok(strstr(o.text, "ends within a packet or block") != NULL, "%s", o.text);
}

static void test_interface_limit(void)
{
	static struct file f;
	struct pl_capture capture;
	static struct pl_batch batch;
	struct pl_source source;
	uint8_t *data, *p;
	size_t len;
	int n;

	begin(&f, true);
	ng_section(&f);
	ng_interface(&f, 1, 0, -1, 0);
	len = 28 + (PL_CAPTURE_INTERFACES_MAX + 1) * 24;
	data = p = malloc(len);
	memcpy(p, f.bytes, 28);
	for (p += 28; p < data + len; p += 24)
		memcpy(p, f.bytes + 28, 24);
	pl_source_init_memory(&source, data, len, 0);
	pl_capture_init(&capture, &source);
	n = pl_capture_recv(&capture, &batch, 0);
	eq(n, -EBADMSG, "too many interfaces");
	ok(strstr(capture.fault_text, "more than 4096 interfaces") != NULL, "%s",
		capture.fault_text);
	pl_capture_done(&capture);
	free(data);
}

/* Cuts the file after every byte: only whole packets, a clean end only between packets. */
static void cut_everywhere(const char *name, const struct file *f, const size_t *ends,
	unsigned int nends, const size_t *clean, unsigned int nclean)
{
	unsigned int wrong = 0;

	for (size_t len = 0; len < f->b.len; len++) {
		unsigned int packets = 0;
		bool clean_here = false;
		uint8_t *exact = malloc(len + 1);
		struct outcome o;

		memcpy(exact, f->bytes, len);
		for (unsigned int i = 0; i < nends; i++)
			packets += ends[i] <= len;
		for (unsigned int i = 0; i < nclean; i++)
			clean_here |= clean[i] == len;
		o = walk(exact, len, len % 3 == 0 ? 5 : 0);
		if (o.packets != packets || o.end != (clean_here ? -ENODATA : -EBADMSG)) {
			printf("# %s cut to %zu: %u packets, wanted %u; end %d: %s\n", name, len,
				o.packets, packets, o.end, o.text);
			wrong++;
		}
		free(exact);
	}
	eq(wrong, 0, "%s cut after every byte", name);
}

static void test_truncation(void)
{
	static const size_t pcap_ends[] = { 24 + 26, 24 + 52 }, pcap_clean[] = { 24, 24 + 26 };
	/* make_ng: 28 section, 12 unknown, 32 and 24 interfaces, 68 packet, 52 unknown, 52 packet,
	 * 28, 32, 56 */
	static const size_t ng_ends[] = { 28 + 12 + 32 + 24 + 68,
		28 + 12 + 32 + 24 + 68 + 52 + 52 };
	static const size_t ng_clean[] = { 28, 40, 72, 96, 164, 216, 268, 296, 328 };
	struct file f;

	begin(&f, true);
	pcap_header(&f, 0xa1b23c4d, 1);
	pcap_packet(&f, 1, 2, 10, 10);
	pcap_packet(&f, 1, 3, 10, 10);
	cut_everywhere("pcap", &f, pcap_ends, 1, pcap_clean, 2);
	make_ng(&f);
	eq(f.b.len, 328 + 56, "the offsets of this test");
	cut_everywhere("pcapng", &f, ng_ends, 2, ng_clean, 9);
}

static size_t gzip(const uint8_t *data, size_t len, uint8_t *dst, size_t cap)
{
	z_stream z = { 0 };

	deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
	z.next_in = (uint8_t *)(uintptr_t)data;
	z.avail_in = (uInt)len;
	z.next_out = dst;
	z.avail_out = (uInt)cap;
	deflate(&z, Z_FINISH);
	deflateEnd(&z);
	return cap - z.avail_out;
}

static void test_gzip(void)
{
	struct outcome plain, o;
	uint8_t packed[4096];
	unsigned int wrong = 0;
	size_t first, len;
	struct file f;

	make_ng(&f);
	plain = walk(f.bytes, f.b.len, 0);
	first = gzip(f.bytes, 100, packed, sizeof(packed));
	len = first + gzip(f.bytes + 100, f.b.len - 100, packed + first, sizeof(packed) - first);
	for (size_t chunk = 0; chunk < 4; chunk++) {
		o = walk(packed, len, chunk);
		eq(o.digest, plain.digest, "gzip of two members, pieces of %zu", chunk);
		eq(o.end, -ENODATA);
	}
	for (size_t cut = 2; cut < len; cut++) {
		o = walk(packed, cut, 0);
		wrong += cut != first && (o.end != -EBADMSG || o.packets > plain.packets);
	}
	eq(wrong, 0, "gzip cut after every byte");
	o = walk(packed, len - 8, 0);
	eq(o.packets, 3, "all packets before the missing check sum");
	eq(o.end, -EBADMSG);
	ok(strstr(o.text, "of the decompressed data: the gzip data end too early") != NULL, "%s",
		o.text);
	packed[len - 8] ^= 1;
	o = walk(packed, len, 0);
	eq(o.end, -EBADMSG, "wrong check sum");
	packed[len - 8] ^= 1;
	packed[len++] = 'x';
	o = walk(packed, len, 0);
	eq(o.packets, 3);
	eq(o.end, -EBADMSG, "something behind");
	ok(strstr(o.text, "other data follow") != NULL, "%s", o.text);
}

/* Damage that shows only at the end of the input: first the bytes before it, then the error,
 * whatever the size of the reads. */
static void test_gzip_damage_at_the_end(void)
{
	/* A stored block with "abc", then a block of the type that does not exist. */
	static const uint8_t data[] = { 0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0, 3, 0, 0xfc, 0xff,
		'a', 'b', 'c', 7 };

	for (size_t chunk = 0; chunk < 3; chunk++) {
		struct pl_source source;
		uint8_t got[8];
		size_t n = 0;
		ssize_t r;

		eq(pl_source_init_memory(&source, data, sizeof(data), chunk), 0);
		while ((r = pl_source_read(&source, got + n, sizeof(got) - n, 0)) > 0)
			n += (size_t)r;
		ok(n == 3 && memcmp(got, "abc", 3) == 0, "what came before, pieces of %zu", chunk);
		eq(r, -EBADMSG);
		streq(source.fault, "the gzip data are damaged");
		pl_source_done(&source);
	}
}

static void test_not_captures(void)
{
	static const struct {
		const char *bytes;
		size_t len;
		const char *says;
	} rows[] = {
		{ "", 0, "byte 0: the file is empty" },
		{ "a", 1, "not a pcap or pcapng file: it begins with 61" },
		{ "hello, world", 12, "begins with 68 65 6c 6c 6f 2c 20 77" },
		{ "\xa1\xb2\xc3\xd4", 4, "byte 4: the file ends within its header" },
		{ "\x28\xb5\x2f\xfd....", 8, "compressed with zstd" },
		{ "\xfd"
		  "7zXZ\0..",
			8, "compressed with xz" },
		{ "BZh91AY", 7, "compressed with bzip2" },
		{ "\x1f\x8b", 2, "gzip data end too early" },
		{ "\x1f\x8b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 14, "gzip data" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct outcome o = walk((const uint8_t *)rows[i].bytes, rows[i].len, 0);

		eq(o.end, -EBADMSG, "not a capture, row %zu", i);
		eq(o.packets, 0);
		ok(strstr(o.text, rows[i].says) != NULL, "%s", o.text);
	}
}

/* Larger than the reader's buffer, packets across its refills, the largest packet there may be. */
static void test_large(void)
{
	size_t cap = 6u << 20;
	struct pl_build b = pl_build(malloc(cap), cap);
	struct outcome o, p;
	unsigned int n = 0;
	struct file f;

	begin(&f, false);
	pcap_header(&f, 0xa1b23c4d, 1);
	pl_put(&b, f.bytes, f.b.len);
	while (b.len < 5u << 20) {
		uint32_t len = n % 50 == 49 ? PL_CAPTURE_PACKET_MAX : n * 37 % 3000;

		pl_put_be32(&b, n);
		pl_put_be32(&b, 0);
		pl_put_be32(&b, len);
		pl_put_be32(&b, len);
		memset(pl_build_reserve(&b, len), (int)n, len);
		n++;
	}
	o = walk(b.data, b.len, 0);
	eq(o.packets, n, "many buffers full");
	eq(o.end, -ENODATA);
	p = walk(b.data, b.len, 4099);
	eq(p.digest, o.digest, "in other pieces");
	free(b.data);
}

int main(void)
{
	test_pcap_forms();
	test_kuznetzov();
	test_links();
	test_loopback_of_three_bytes();
	test_ng_clocks();
	test_ng_sections();
	test_ng_other_packets();
	test_length_lies();
	test_pcap_lies();
	test_ng_lies();
	test_interface_limit();
	test_truncation();
	test_gzip();
	test_gzip_damage_at_the_end();
	test_not_captures();
	test_large();
	return pl_test_done();
}

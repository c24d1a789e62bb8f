/* SPDX-License-Identifier: BSD-2-Clause */
/* Parses a message of the kernel's group ioam6_events, built from its UAPI (linux/ioam6_genl.h),
 * little-endian. */
#include "netio/ioam6.h"

#include <errno.h>
#include <string.h>

#include "base/test.h"

/* Namespace 123, NodeLen 2, type 0xC00000, one node: hop limit 62, node 2, interfaces 1 and 3. */
static const uint8_t message[] = {
	/* length 60, type, flags, sequence, sender; command 1, version 1 */
	60, 0, 0, 0, 0x24, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0,
	/* 1: namespace */
	6, 0, 1, 0, 123, 0, 0, 0,
	/* 2: NodeLen */
	5, 0, 2, 0, 2, 0, 0, 0,
	/* 3: trace type, in the upper 24 bits */
	8, 0, 3, 0, 0, 0, 0, 0xc0,
	/* 4: the used words */
	12, 0, 4, 0, 62, 0, 0, 2, 0, 1, 0, 3,
	/* 9: an unknown attribute */
	4, 0, 9, 0
};

static void test_event(void)
{
	static const uint8_t want[] = { 0, 123, 2 << 3, 0, 0xc0, 0, 0, 0, 62, 0, 0, 2, 0, 1, 0, 3 };
	uint8_t got[64], damaged[sizeof(message)];

	eq((uint64_t)pl_ioam6_event(got, sizeof(got), message, sizeof(message)), sizeof(want));
	memeq(got, want, sizeof(want), "the body of a trace option");
	eq((uint64_t)pl_ioam6_event(got, sizeof(want), message, sizeof(message)), sizeof(want),
		"as much room as it needs");
	eq((uint64_t)pl_ioam6_event(got, sizeof(want) - 1, message, sizeof(message)),
		(uint64_t)-EBADMSG, "less room");
	memcpy(damaged, message, sizeof(message));
	damaged[16] = 2;
	eq((uint64_t)pl_ioam6_event(got, sizeof(got), damaged, sizeof(damaged)), (uint64_t)-EBADMSG,
		"another command");
	memcpy(damaged, message, sizeof(message));
	damaged[20 + 2] = 9;
	eq((uint64_t)pl_ioam6_event(got, sizeof(got), damaged, sizeof(damaged)), (uint64_t)-EBADMSG,
		"no namespace");
	memcpy(damaged, message, sizeof(message));
	damaged[28] = 6;
	eq((uint64_t)pl_ioam6_event(got, sizeof(got), damaged, sizeof(damaged)), (uint64_t)-EBADMSG,
		"a NodeLen of two bytes");
	memcpy(damaged, message, sizeof(message));
	damaged[32] = 32;
	eq((uint64_t)pl_ioam6_event(got, sizeof(got), damaged, sizeof(damaged)), (uint64_t)-EBADMSG,
		"a NodeLen of more than five bits");
}

/* The parser reads no byte beyond the end of a cut message: the sanitizer would report it. */
static void test_cut(void)
{
	unsigned int good = 0;

	for (size_t n = 0; n < sizeof(message); n++) {
		uint8_t *cut = malloc(n == 0 ? 1 : n), got[64];

		if (cut == NULL)
			abort();
		memcpy(cut, message, n);
		good += pl_ioam6_event(got, sizeof(got), cut, n) >= 0;
		if (n >= 4) {
			cut[0] = (uint8_t)n;
			(void)pl_ioam6_event(got, sizeof(got), cut, n);
		}
		free(cut);
	}
	eq(good, 0, "a message that is cut is none");
}

int main(void)
{
	test_event();
	test_cut();
	return pl_test_done();
}

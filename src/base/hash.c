/* SPDX-License-Identifier: BSD-2-Clause */
/* Draws random seeds for hashes. */
#include "base/hash.h"

#include <pthread.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/random.h>

static uint64_t seed;

static void draw(void)
{
	const void *boot;

	if (getrandom(&seed, sizeof(seed), 0) == (ssize_t)sizeof(seed))
		return;
	/* The call is missing or forbidden: take the 16 random bytes the kernel gave this process
	 * at exec. */
	boot = (const void *)getauxval(AT_RANDOM); // NOLINT(performance-no-int-to-ptr)
	if (boot != NULL)
		memcpy(&seed, boot, sizeof(seed));
}

uint64_t pl_hash_seed(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, draw);
	return seed;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The last state of each link, in telemetry memory: last_value FILE LINK [STATE] makes the file,
 * sets, or asks.
 * cc last_value.c $(pkg-config --cflags --libs pathline) */
#include <pathline/pathline.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	const struct pathline_shape shape = {
		.primitive = PATHLINE_KEY_WRITE, .slots = 4096, .value_bytes = 8
	};
	struct pathline_error error = { "" };
	struct pathline_region *r;
	char state[9] = "";
	int result;

	if (argc < 3)
		return 2;
	result = pathline_region_open(
		&r, argv[1], argc > 3 ? PATHLINE_WRITE : PATHLINE_READ, &error);
	if (result < 0 && argc > 3)
		result = pathline_region_create(&r, argv[1], &shape, &error);
	if (result < 0)
		return fprintf(stderr, "%s\n", error.text), 1;
	if (argc > 3) {
		strncpy(state, argv[3], sizeof(state) - 1);
		result = pathline_key_write_put(r, argv[2], strlen(argv[2]), state, 8);
	} else {
		result = pathline_key_write_get(r, argv[2], strlen(argv[2]), state, 8);
		puts(result == PATHLINE_FOUND ? state : "unknown");
	}
	return pathline_region_close(r) < 0 || result < 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs a fuzz target over files instead of under the fuzzing engine: each file, or each file of a
 * folder, once. The input lies in a heap block of exactly its size, so that the address sanitizer
 * sees a read of one byte more. One TAP line per file. Files come in name order.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned int count, failed;

static void replay(const char *path)
{
	FILE *f = fopen(path, "rb");
	struct stat st;
	uint8_t *block = NULL;
	size_t size = 0;

	count++;
	if (f == NULL || fstat(fileno(f), &st) != 0)
		goto fail;
	size = (size_t)st.st_size;
	block = malloc(size);
	if ((block == NULL && size > 0) || (size > 0 && fread(block, 1, size, f) != size))
		goto fail;
	/* Said first: when the target aborts, the last line names the input. */
	printf("# %s\n", path);
	fflush(stdout);
	LLVMFuzzerTestOneInput(block, size);
	printf("ok %u - %s\n", count, strrchr(path, '/') != NULL ? strrchr(path, '/') + 1 : path);
	goto done;
fail:
	printf("not ok %u - cannot read %s\n", count, path);
	failed++;
done:
	free(block);
	if (f != NULL)
		fclose(f);
}

static void replay_folder(const char *path)
{
	struct dirent **names;
	char file[4096];
	int n = scandir(path, &names, NULL, alphasort);

	for (int i = 0; i < n; i++) {
		if (names[i]->d_name[0] != '.') {
			snprintf(file, sizeof(file), "%s/%s", path, names[i]->d_name);
			replay(file);
		}
		free(names[i]);
	}
	if (n >= 0)
		free(names);
}

int main(int argc, char **argv)
{
	struct stat st;

	/* The empty input is in every corpus. */
	LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
	printf("ok %u - empty input\n", ++count);
	for (int i = 1; i < argc; i++) {
		if (stat(argv[i], &st) == 0 && S_ISDIR(st.st_mode))
			replay_folder(argv[i]);
		else
			replay(argv[i]);
	}
	printf("1..%u\n", count);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

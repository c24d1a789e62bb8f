/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/test.h"

static unsigned int entries(const char *folder)
{
	DIR *dir = opendir(folder);
	unsigned int n = 0;

	if (dir == NULL)
		return 0;
	while (readdir(dir) != NULL)
		n++;
	closedir(dir);
	return n - 2;
}

/* What the first line of a file gives; NULL: it is refused, and diag quotes nothing of it. */
static char *secret_of(const char *path, const char *content, size_t len)
{
	struct pl_diag diag = { .text = "" };
	char *secret = NULL;
	int r;

	eq(pl_file_replace(path, content, len, 0600), 0);
	r = pl_file_read_secret_line(path, 20, &secret, &diag);
	if (r < 0)
		ok(secret == NULL && strstr(diag.text, path) != NULL &&
			strstr(diag.text, "sesame") == NULL);
	return secret;
}

static void secrets(const char *path)
{
	static const char *const good[] = { "sesame", "sesame\n", "sesame\r\n", "sesame\nmore\n" };
	static const char *const bad[] = { "", "\n", "\nsesame", "ses\tame\n", "\x7fsesame",
		"a sesame that is long" };
	struct pl_diag diag;
	char *secret;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		secret = secret_of(path, good[i], strlen(good[i]));
		streq(secret, "sesame", "its first line");
		pl_file_forget(secret);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ok(secret_of(path, bad[i], strlen(bad[i])) == NULL, "refused: case %zu", i);
	ok(secret_of(path, "sesame\0x", 8) == NULL, "a byte 0 ends no line");
	eq(chmod(path, 0602), 0);
	eq(pl_file_read_secret_line(path, 20, &secret, &diag), (uint64_t)-EINVAL,
		"a file that everybody may write");
	pl_file_forget(NULL);
}

int main(void)
{
	char folder[] = "/tmp/pl-file-test.XXXXXX", path[64], big[10000];
	char *data = NULL;
	struct stat st;
	size_t len = 0;
	int ends[2];

	if (mkdtemp(folder) == NULL)
		return pl_test_skip("no place for a folder");
	snprintf(path, sizeof(path), "%s/a", folder);
	memset(big, 'b', sizeof(big));

	eq(pl_file_read(path, 100, &data, &len), (uint64_t)-ENOENT);
	eq(pl_file_read(folder, 100, &data, &len), (uint64_t)-EISDIR);
	ok(data == NULL && len == 0, "outputs are left alone");
	eq(pl_file_replace(path, "hello", 5, 0640), 0);
	ok(stat(path, &st) == 0 && (st.st_mode & 07777) == 0640, "mode");
	eq(pl_file_read(path, 5, &data, &len), 0, "just as long as allowed");
	eq(len, 5);
	streq(data, "hello", "terminated");
	free(data);
	data = NULL;
	eq(pl_file_read(path, 4, &data, &len), (uint64_t)-EFBIG, "longer than allowed");
	ok(data == NULL, "nothing to free");
	eq(pl_file_replace(path, big, sizeof(big), 0600), 0, "replaced");
	eq(pl_file_read(path, sizeof(big), &data, &len), 0);
	ok(len == sizeof(big) && memcmp(data, big, len) == 0, "many blocks");
	free(data);
	eq(pl_file_replace(path, NULL, 0, 0600), 0, "by nothing");
	eq(pl_file_read(path, 0, &data, &len), 0, "an empty file");
	ok(len == 0 && data[0] == '\0', "is an empty string");
	free(data);
	eq(entries(folder), 1, "no temporary file stays");
	secrets(path);
	eq(pl_file_replace("/nonexistent/a", "x", 1, 0600), (uint64_t)-ENOENT);
	unlink(path);
	mkdir(path, 0700);
	eq(pl_file_replace(path, "x", 1, 0600), (uint64_t)-EISDIR, "not over a folder");
	eq(entries(folder), 1, "nor then");
	rmdir(path);
	rmdir(folder);

	if (pipe(ends) != 0)
		return pl_test_skip("no pipe");
	ok(write(ends[1], "from a pipe", 11) == 11);
	close(ends[1]);
	dup2(ends[0], STDIN_FILENO);
	eq(pl_file_read("-", 100, &data, &len), 0);
	ok(len == 11 && strcmp(data, "from a pipe") == 0, "standard input");
	free(data);
	return pl_test_done();
}

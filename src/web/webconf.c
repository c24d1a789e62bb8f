/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the file of allowed clients and TLS. */
#include "web/webconf.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/conf.h"
#include "base/file.h"
#include "base/num.h"
#include "web/auth.h"
#include "web/tls.h"

enum {
	PEM_MAX = 1 << 20,
	TOKEN_MAX = 4096,
	MAX_USERS = 1000,
};

/* Values of the file, before they are checked. */
struct text {
	char *cert_file, *key_file, *client_ca_file, *cert, *key, *client_ca;
	unsigned int client_auth, min_version, max_version;
	bool prefer_server, http2;
	struct pl_conf_list allowed_sans, suites, curves, users, tokens;
	char *headers[PL_WEB_HEADERS_MAX];
};

static const char *const client_auths[] = { "NoClientCert", "RequestClientCert",
	"RequireAnyClientCert", "VerifyClientCertIfGiven", "RequireAndVerifyClientCert", NULL };
static const char *const versions[] = { "TLS10", "TLS11", "TLS12", "TLS13", NULL };

/* In the order of struct text's headers. */
static const char *const header_names[] = { "Content-Security-Policy", "Strict-Transport-Security",
	"X-Content-Type-Options", "X-Frame-Options", "X-XSS-Protection" };

static int check_header(const char *value, struct pl_diag *diag)
{
	for (const char *p = value; *p != '\0'; p++) {
		if ((unsigned char)*p < 0x20 || (unsigned char)*p >= 0x7f)
			return pl_diag_fail(
				diag, -EINVAL, "the value of a header must be printable ASCII");
	}
	return 0;
}

static int check_hash(const char *value, struct pl_diag *diag)
{
	return pl_auth_check_hash(value, diag);
}

/* clang-format off */
#define AT(member) .offset = offsetof(struct text, member)
#define HEADER(i, name) { .key = "http_server_config.headers." name, .type = PL_CONF_STRING, AT(headers[i]), .check = check_header, \
	  .help = "Headers sent with every answer." }
static const struct pl_conf_row rows[] = {
	{ .key = "tls_server_config.cert_file", .type = PL_CONF_STRING, AT(cert_file), .help = "File of the certificate chain, PEM." },
	{ .key = "tls_server_config.key_file", .type = PL_CONF_STRING, AT(key_file), .help = "File of the private key, PEM." },
	{ .key = "tls_server_config.cert", .type = PL_CONF_STRING, AT(cert), .help = "Certificate chain as text." },
	{ .key = "tls_server_config.key", .type = PL_CONF_STRING, AT(key), .help = "Private key as text." },
	{ .key = "tls_server_config.client_auth_type", .type = PL_CONF_CHOICE, AT(client_auth), .def = "NoClientCert", .choices = client_auths,
	  .help = "Whether clients must present a certificate." },
	{ .key = "tls_server_config.client_ca_file", .type = PL_CONF_STRING, AT(client_ca_file), .help = "File of the CA certificates that sign client certificates, PEM." },
	{ .key = "tls_server_config.client_ca", .type = PL_CONF_STRING, AT(client_ca), .help = "CA certificates of clients as text." },
	{ .key = "tls_server_config.client_allowed_sans", .type = PL_CONF_STRINGS, AT(allowed_sans), .max = 64,
	  .help = "Names (DNS, address, mail, URI), one of which a client certificate must have." },
	{ .key = "tls_server_config.min_version", .type = PL_CONF_CHOICE, AT(min_version), .def = "TLS12", .choices = versions, .help = "Oldest TLS version." },
	{ .key = "tls_server_config.max_version", .type = PL_CONF_CHOICE, AT(max_version), .def = "TLS13", .choices = versions, .help = "Newest TLS version." },
	{ .key = "tls_server_config.cipher_suites", .type = PL_CONF_STRINGS, AT(suites), .max = 64,
	  .help = "Cipher suites up to TLS 1.2 by their IANA names; TLS 1.3 uses their ciphers too." },
	{ .key = "tls_server_config.prefer_server_cipher_suites", .type = PL_CONF_BOOL, AT(prefer_server), .def = "true",
	  .help = "Prefer the cipher order of the server." },
	{ .key = "tls_server_config.curve_preferences", .type = PL_CONF_STRINGS, AT(curves), .max = 8,
	  .help = "Curves: CurveP256, CurveP384, CurveP521, X25519." },
	{ .key = "http_server_config.http2", .type = PL_CONF_BOOL, AT(http2), .def = "true", .help = "Ignored: the server speaks HTTP/1.1 only." },
	HEADER(0, "Content-Security-Policy"),
	HEADER(1, "Strict-Transport-Security"),
	HEADER(2, "X-Content-Type-Options"),
	HEADER(3, "X-Frame-Options"),
	HEADER(4, "X-XSS-Protection"),
	{ .key = "basic_auth_users", .type = PL_CONF_PAIRS, AT(users), .max = MAX_USERS, .check = check_hash,
	  .help = "Names and the bcrypt hashes of their passwords." },
	{ .key = "bearer_token_files", .type = PL_CONF_STRINGS, AT(tokens), .max = PL_WEB_TOKENS_MAX,
	  .help = "Files whose first line is a token." },
	{ .type = PL_CONF_END },
};
/* clang-format on */

bool pl_webconf_asks(const struct pl_webconf *conf)
{
	return conf->n_users > 0 || conf->n_tokens > 0 ||
	       (conf->tls && (conf->client_auth == PL_WEB_REQUIRE_ANY_CLIENT_CERT ||
				     conf->client_auth == PL_WEB_REQUIRE_AND_VERIFY_CLIENT_CERT));
}

static void wipe(char *secret)
{
	if (secret != NULL)
		explicit_bzero(secret, strlen(secret));
	free(secret);
}

void pl_webconf_free(struct pl_webconf *c)
{
	if (c == NULL)
		return;
	free(c->cert);
	wipe(c->key);
	free(c->client_ca);
	for (size_t i = 0; i < c->n_allowed_sans; i++)
		free(c->allowed_sans[i]);
	free(c->allowed_sans);
	free(c->priorities);
	for (size_t i = 0; i < c->n_users; i++) {
		free(c->users[i].name);
		wipe(c->users[i].hash);
	}
	free(c->users);
	for (size_t i = 0; i < c->n_tokens; i++)
		wipe(c->tokens[i]);
	for (size_t i = 0; i < c->n_headers; i++)
		free(c->headers[i].value);
	free(c);
}

/* Takes the text itself, or that of a file beside the configuration. NULL when neither is given. */
static int take_pem(char **ret, char **text, const char *file, const char *key, const char *folder,
	struct pl_diag *diag)
{
	char path[PATH_MAX];
	size_t len;
	int r;

	if (*text != NULL && file != NULL)
		return pl_diag_fail(diag, -EINVAL,
			"tls_server_config: %s and %s_file exclude each other", key, key);
	if (file == NULL) {
		*ret = *text;
		*text = NULL;
		return 0;
	}
	if (snprintf(path, sizeof(path), "%s%s%s", file[0] == '/' ? "" : folder,
		    file[0] == '/' ? "" : "/", file) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	r = pl_file_read_secret(path, PEM_MAX, ret, &len);
	if (r < 0) {
		pl_diag_set(diag, "tls_server_config.%s_file: cannot read %s: %s", key, path,
			pl_file_secret_trouble(r));
		return r == -EKEYREJECTED ? -EINVAL : r;
	}
	if (strlen(*ret) != len)
		return pl_diag_fail(
			diag, -EINVAL, "tls_server_config.%s_file: %s is not PEM", key, path);
	return 0;
}

static int take_tls(struct pl_webconf *c, struct text *t, const char *folder, struct pl_diag *diag)
{
	struct pl_tls_wish wish = {
		.min_version = t->min_version,
		.max_version = t->max_version,
		.suites = t->suites.items,
		.n_suites = t->suites.n,
		.curves = t->curves.items,
		.n_curves = t->curves.n,
		.prefer_server = t->prefer_server,
	};
	bool needs_ca = t->client_auth != PL_WEB_NO_CLIENT_CERT;
	int r = take_pem(&c->cert, &t->cert, t->cert_file, "cert", folder, diag);

	if (r == 0)
		r = take_pem(&c->key, &t->key, t->key_file, "key", folder, diag);
	if (r == 0)
		r = take_pem(
			&c->client_ca, &t->client_ca, t->client_ca_file, "client_ca", folder, diag);
	if (r < 0)
		return r;
	c->client_auth = t->client_auth;
	if (c->cert == NULL && c->key == NULL && c->client_ca == NULL && !needs_ca)
		return 0;
	if (c->cert == NULL || c->key == NULL)
		return pl_diag_fail(diag, -EINVAL,
			"tls_server_config: cert_file needs key_file, and key_file needs cert_file");
	if (needs_ca != (c->client_ca != NULL))
		return pl_diag_fail(diag, -EINVAL,
			needs_ca
				? "tls_server_config: client_auth_type %s needs client_ca_file"
				: "tls_server_config: client_ca_file needs a client_auth_type other than %s",
			client_auths[t->client_auth]);
	c->tls = true;
	c->allowed_sans = t->allowed_sans.items;
	c->n_allowed_sans = t->allowed_sans.n;
	t->allowed_sans = (struct pl_conf_list){ 0 };
	if (c->n_allowed_sans > 0 && c->client_auth != PL_WEB_VERIFY_CLIENT_CERT_IF_GIVEN &&
		c->client_auth != PL_WEB_REQUIRE_AND_VERIFY_CLIENT_CERT)
		return pl_diag_fail(diag, -EINVAL,
			"tls_server_config: client_allowed_sans needs a client_auth_type "
			"that verifies");
	r = pl_tls_priorities(&wish, &c->priorities, diag);
	return r < 0 ? r : pl_tls_check(c->cert, c->key, c->client_ca, diag);
}

static int take_users(struct pl_webconf *c, struct text *t, struct pl_diag *diag)
{
	struct pl_conf_pair *pairs = t->users.items;

	if (t->users.n == 0)
		return 0;
	c->users = calloc(t->users.n, sizeof(*c->users));
	if (c->users == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < t->users.n; i++) {
		if (pairs[i].name[0] == '\0' || strchr(pairs[i].name, ':') != NULL)
			return pl_diag_fail(diag, -EINVAL,
				"basic_auth_users: a name must not be empty or contain a colon");
		c->users[c->n_users++] = (struct pl_web_user){ pairs[i].name, pairs[i].value };
		pairs[i] = (struct pl_conf_pair){ NULL, NULL };
	}
	return 0;
}

static int take_tokens(
	struct pl_webconf *c, const struct text *t, const char *folder, struct pl_diag *diag)
{
	char *const *files = t->tokens.items;

	for (size_t i = 0; i < t->tokens.n; i++) {
		char path[PATH_MAX], *text;
		struct pl_diag why;
		int r;

		if (snprintf(path, sizeof(path), "%s%s%s", files[i][0] == '/' ? "" : folder,
			    files[i][0] == '/' ? "" : "/", files[i]) >= (int)sizeof(path))
			return -ENAMETOOLONG;
		r = pl_file_read_secret_line(path, TOKEN_MAX, &text, &why);
		if (r < 0)
			return pl_diag_fail(diag, r, "bearer_token_files: %s", why.text);
		c->tokens[c->n_tokens++] = text;
		if (strlen(text) < 16)
			return pl_diag_fail(diag, -EINVAL,
				"bearer_token_files: the first line of %s has fewer than 16 characters: use a longer token",
				path);
	}
	return 0;
}

static void take_headers(struct pl_webconf *c, struct text *t)
{
	for (size_t i = 0; i < sizeof(header_names) / sizeof(header_names[0]); i++) {
		if (t->headers[i] == NULL)
			continue;
		c->headers[c->n_headers++] =
			(struct pl_web_header){ header_names[i], t->headers[i] };
		t->headers[i] = NULL;
	}
}

int pl_webconf_parse(struct pl_webconf **ret, const char *name, const char *folder,
	const char *text, size_t len, struct pl_diag *diag)
{
	struct text t = { 0 };
	struct pl_webconf *c;
	int r;

	*ret = NULL;
	r = pl_conf_parse(rows, name, text, len, &t, diag);
	if (r < 0)
		return r;
	c = calloc(1, sizeof(*c));
	r = c == NULL ? -ENOMEM : take_tls(c, &t, folder, diag);
	if (r == 0)
		r = take_users(c, &t, diag);
	if (r == 0)
		r = take_tokens(c, &t, folder, diag);
	if (r == 0)
		take_headers(c, &t);
	wipe(t.key);
	t.key = NULL;
	pl_conf_done(rows, &t);
	if (r < 0) {
		if (r == -ENOMEM)
			pl_diag_set(diag, "out of memory");
		pl_webconf_free(c);
		return r;
	}
	*ret = c;
	return 0;
}

static void folder_of(const char *path, char ret[PATH_MAX])
{
	const char *slash = strrchr(path, '/');

	snprintf(ret, PATH_MAX, "%.*s", slash != NULL ? (int)(slash - path) : 1,
		slash != NULL ? path : ".");
}

int pl_webconf_load(struct pl_webconf **ret, const char *path, struct pl_diag *diag)
{
	char folder[PATH_MAX], *text;
	size_t len;
	int r;

	*ret = NULL;
	folder_of(path, folder);
	r = pl_file_read_secret(path, PEM_MAX, &text, &len);
	if (r < 0) {
		if (diag != NULL)
			snprintf(diag->file, sizeof(diag->file), "%s", path);
		pl_diag_set(diag, "cannot read: %s", pl_file_secret_trouble(r));
		return r == -EKEYREJECTED ? -EINVAL : r;
	}
	r = pl_webconf_parse(ret, path, folder, text, len, diag);
	explicit_bzero(text, len);
	free(text);
	return r;
}

static int name_file(
	const char *folder, const char *file, int (*take)(void *arg, const char *file), void *arg)
{
	char path[PATH_MAX];

	if (file == NULL || snprintf(path, sizeof(path), "%s%s%s", file[0] == '/' ? "" : folder,
				    file[0] == '/' ? "" : "/", file) >= (int)sizeof(path))
		return 0;
	return take(arg, path);
}

int pl_webconf_files(const char *path, int (*take)(void *arg, const char *file), void *arg)
{
	struct text t = { 0 };
	char folder[PATH_MAX], *text;
	size_t len;
	int r;

	folder_of(path, folder);
	if (pl_file_read(path, PEM_MAX, &text, &len) < 0)
		return 0;
	r = pl_conf_parse(rows, path, text, len, &t, NULL) < 0 ? -EINVAL : 0;
	explicit_bzero(text, len);
	free(text);
	if (r < 0)
		return 0;
	r = name_file(folder, t.cert_file, take, arg);
	if (r == 0)
		r = name_file(folder, t.key_file, take, arg);
	if (r == 0)
		r = name_file(folder, t.client_ca_file, take, arg);
	for (size_t i = 0; r == 0 && i < t.tokens.n; i++)
		r = name_file(folder, ((char *const *)t.tokens.items)[i], take, arg);
	wipe(t.key);
	t.key = NULL;
	pl_conf_done(rows, &t);
	return r;
}

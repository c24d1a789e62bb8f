/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks the TLS options, certificates and keys of the web configuration. */
#include "web/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

#include "base/buf.h"
#include "base/num.h"

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

/* ---- priorities ---- */

/* IANA's names and the parts of each in GnuTLS' words. */
static const struct suite {
	const char *name, *kx, *cipher, *mac;
	gnutls_kx_algorithm_t kx_id;
	gnutls_cipher_algorithm_t cipher_id;
	gnutls_mac_algorithm_t mac_id;
} suites[] = {
#define SUITE(n, k, kid, c, cid, m, mid)                                                           \
	{                                                                                          \
		"TLS_" n, k, c, m, GNUTLS_KX_##kid, GNUTLS_CIPHER_##cid, GNUTLS_MAC_##mid          \
	}
	SUITE("ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "ECDHE-ECDSA", ECDHE_ECDSA, "AES-128-GCM",
		AES_128_GCM, "AEAD", AEAD),
	SUITE("ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "ECDHE-ECDSA", ECDHE_ECDSA, "AES-256-GCM",
		AES_256_GCM, "AEAD", AEAD),
	SUITE("ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-ECDSA", ECDHE_ECDSA,
		"CHACHA20-POLY1305", CHACHA20_POLY1305, "AEAD", AEAD),
	SUITE("ECDHE_ECDSA_WITH_AES_128_CBC_SHA", "ECDHE-ECDSA", ECDHE_ECDSA, "AES-128-CBC",
		AES_128_CBC, "SHA1", SHA1),
	SUITE("ECDHE_ECDSA_WITH_AES_256_CBC_SHA", "ECDHE-ECDSA", ECDHE_ECDSA, "AES-256-CBC",
		AES_256_CBC, "SHA1", SHA1),
	SUITE("ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA", ECDHE_RSA, "AES-128-GCM",
		AES_128_GCM, "AEAD", AEAD),
	SUITE("ECDHE_RSA_WITH_AES_256_GCM_SHA384", "ECDHE-RSA", ECDHE_RSA, "AES-256-GCM",
		AES_256_GCM, "AEAD", AEAD),
	SUITE("ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA", ECDHE_RSA,
		"CHACHA20-POLY1305", CHACHA20_POLY1305, "AEAD", AEAD),
	SUITE("ECDHE_RSA_WITH_AES_128_CBC_SHA", "ECDHE-RSA", ECDHE_RSA, "AES-128-CBC", AES_128_CBC,
		"SHA1", SHA1),
	SUITE("ECDHE_RSA_WITH_AES_256_CBC_SHA", "ECDHE-RSA", ECDHE_RSA, "AES-256-CBC", AES_256_CBC,
		"SHA1", SHA1),
	SUITE("RSA_WITH_AES_128_GCM_SHA256", "RSA", RSA, "AES-128-GCM", AES_128_GCM, "AEAD", AEAD),
	SUITE("RSA_WITH_AES_256_GCM_SHA384", "RSA", RSA, "AES-256-GCM", AES_256_GCM, "AEAD", AEAD),
	SUITE("RSA_WITH_AES_128_CBC_SHA", "RSA", RSA, "AES-128-CBC", AES_128_CBC, "SHA1", SHA1),
	SUITE("RSA_WITH_AES_256_CBC_SHA", "RSA", RSA, "AES-256-CBC", AES_256_CBC, "SHA1", SHA1),
#undef SUITE
};

static int fail_unknown(
	const char *key, const char *text, const char *const *names, size_t n, struct pl_diag *diag)
{
	pl_diag_set(diag, "tls_server_config.%s: unknown value \"%s\"", key, text);
	pl_diag_nearest(diag, '"', text, names, n);
	return -EINVAL;
}

static const struct suite *find_suite(const char *name)
{
	/* Go's older names end differently. */
	size_t n = strlen(name);
	static const char tail[] = "_CHACHA20_POLY1305";

	for (size_t i = 0; i < COUNT(suites); i++) {
		if (strcmp(suites[i].name, name) == 0)
			return &suites[i];
		if (n > sizeof(tail) && strcmp(name + n - (sizeof(tail) - 1), tail) == 0 &&
			strncmp(suites[i].name, name, n) == 0)
			return &suites[i];
	}
	return NULL;
}

static void add_word(struct pl_buf *out, const char *word)
{
	pl_buf_str(out, ":+");
	pl_buf_str(out, word);
}

static void add_versions(struct pl_buf *out, const struct pl_tls_wish *w)
{
	static const char *const words[] = { "VERS-TLS1.0", "VERS-TLS1.1", "VERS-TLS1.2",
		"VERS-TLS1.3" };

	pl_buf_str(out, ":-VERS-ALL");
	for (unsigned int v = w->max_version + 1; v-- > w->min_version;)
		add_word(out, words[v]);
}

static int add_curves(struct pl_buf *out, const struct pl_tls_wish *w, struct pl_diag *diag)
{
	static const char *const names[] = { "CurveP256", "CurveP384", "CurveP521", "X25519" };
	static const char *const words[] = { "GROUP-SECP256R1", "GROUP-SECP384R1",
		"GROUP-SECP521R1", "GROUP-X25519" };

	if (w->n_curves == 0)
		return 0;
	pl_buf_str(out, ":-GROUP-ALL");
	for (size_t i = 0; i < w->n_curves; i++) {
		size_t k = 0;

		while (k < COUNT(names) && strcmp(names[k], w->curves[i]) != 0)
			k++;
		if (k == COUNT(names))
			return fail_unknown(
				"curve_preferences", w->curves[i], names, COUNT(names), diag);
		add_word(out, words[k]);
	}
	return 0;
}

static int add_suites(struct pl_buf *out, const struct pl_tls_wish *w, struct pl_diag *diag)
{
	const char *names[COUNT(suites)];

	if (w->n_suites == 0)
		return 0;
	for (size_t i = 0; i < COUNT(suites); i++)
		names[i] = suites[i].name;
	pl_buf_str(out, ":-KX-ALL:-CIPHER-ALL:-MAC-ALL");
	for (size_t i = 0; i < w->n_suites; i++) {
		const struct suite *s = find_suite(w->suites[i]);

		if (s == NULL)
			return fail_unknown(
				"cipher_suites", w->suites[i], names, COUNT(names), diag);
		add_word(out, s->kx);
		add_word(out, s->cipher);
		add_word(out, s->mac);
	}
	return 0;
}

static bool is_wished(const struct pl_tls_wish *w, gnutls_kx_algorithm_t kx,
	gnutls_cipher_algorithm_t cipher, gnutls_mac_algorithm_t mac)
{
	for (size_t i = 0; i < w->n_suites; i++) {
		const struct suite *s = find_suite(w->suites[i]);

		if (s != NULL && s->kx_id == kx && s->cipher_id == cipher && s->mac_id == mac)
			return true;
	}
	return false;
}

/* Refuses priorities that enable other suites: they are sets of parts, so a list of whole suites
 * may bring others along. */
static int refuse_more(gnutls_priority_t cache, const struct pl_tls_wish *w, struct pl_diag *diag)
{
	unsigned int index;

	for (unsigned int i = 0;; i++) {
		gnutls_kx_algorithm_t kx;
		gnutls_cipher_algorithm_t cipher;
		gnutls_mac_algorithm_t mac;
		gnutls_protocol_t version;
		const char *name;
		int r = gnutls_priority_get_cipher_suite_index(cache, i, &index);

		if (r == GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE)
			return 0;
		if (r != 0)
			continue;
		name = gnutls_cipher_suite_info(index, NULL, &kx, &cipher, &mac, &version);
		/* Suites of TLS 1.3 name no key exchange. */
		if (name == NULL || kx == GNUTLS_KX_UNKNOWN || version == GNUTLS_TLS1_3 ||
			is_wished(w, kx, cipher, mac))
			continue;
		return pl_diag_fail(diag, -EINVAL,
			"tls_server_config.cipher_suites: these suites imply %s, which is not listed; list it too, or remove the suites that imply it",
			name);
	}
}

int pl_tls_priorities(const struct pl_tls_wish *w, char **ret, struct pl_diag *diag)
{
	gnutls_priority_t cache;
	const char *at = "";
	struct pl_buf out;
	int r;

	if (w->min_version > w->max_version)
		return pl_diag_fail(
			diag, -EINVAL, "tls_server_config: min_version is newer than max_version");
	pl_buf_init(&out);
	pl_buf_str(&out, "NORMAL");
	add_versions(&out, w);
	r = add_suites(&out, w, diag);
	if (r == 0)
		r = add_curves(&out, w, diag);
	if (w->prefer_server)
		pl_buf_str(&out, ":%SERVER_PRECEDENCE");
	if (r == 0 && out.failed)
		r = -ENOMEM;
	if (r == 0 && gnutls_priority_init(&cache, out.data, &at) != GNUTLS_E_SUCCESS) {
		r = pl_diag_fail(diag, -EINVAL,
			"tls_server_config: GnuTLS does not support this combination: \"%s\"", at);
	} else if (r == 0) {
		if (w->n_suites > 0 && w->min_version < 3)
			r = refuse_more(cache, w, diag);
		gnutls_priority_deinit(cache);
	}
	if (r < 0) {
		pl_buf_done(&out);
		return r;
	}
	*ret = out.data;
	return 0;
}

/* ---- certificates ---- */

static gnutls_datum_t datum(const char *text)
{
	return (gnutls_datum_t){ (unsigned char *)text, (unsigned int)strlen(text) };
}

int pl_tls_check(const char *cert, const char *key, const char *client_ca, struct pl_diag *diag)
{
	gnutls_certificate_credentials_t c;
	gnutls_datum_t cert_text = datum(cert), key_text = datum(key);
	int r = gnutls_certificate_allocate_credentials(&c);

	if (r < 0)
		return -ENOMEM;
	/* Also compares the key with the certificate. */
	r = gnutls_certificate_set_x509_key_mem2(
		c, &cert_text, &key_text, GNUTLS_X509_FMT_PEM, NULL, 0);
	if (r < 0)
		pl_diag_set(diag, "tls_server_config: certificate and key: %s", gnutls_strerror(r));
	if (r >= 0 && client_ca != NULL) {
		gnutls_datum_t ca = datum(client_ca);

		r = gnutls_certificate_set_x509_trust_mem(c, &ca, GNUTLS_X509_FMT_PEM);
		if (r == 0)
			r = GNUTLS_E_NO_CERTIFICATE_FOUND;
		if (r < 0)
			pl_diag_set(
				diag, "tls_server_config.client_ca_file: %s", gnutls_strerror(r));
	}
	gnutls_certificate_free_credentials(c);
	return r < 0 ? -EINVAL : 0;
}

/* Returns true when the certificate has one of the names; all kinds are compared as texts. */
static bool has_name(gnutls_x509_crt_t crt, const struct pl_webconf *conf)
{
	char name[512], text[INET6_ADDRSTRLEN];

	for (unsigned int i = 0;; i++) {
		size_t size = sizeof(name) - 1;
		const char *value = name;
		int type = gnutls_x509_crt_get_subject_alt_name(crt, i, name, &size, NULL);

		if (type == GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE)
			return false;
		if (type == GNUTLS_E_SHORT_MEMORY_BUFFER)
			continue;
		if (type < 0)
			return false;
		name[size] = '\0';
		if (type == GNUTLS_SAN_IPADDRESS) {
			if (size != 4 && size != 16)
				continue;
			inet_ntop(size == 4 ? AF_INET : AF_INET6, name, text, sizeof(text));
			value = text;
		} else if (strlen(name) != size) {
			continue;
		}
		for (size_t k = 0; k < conf->n_allowed_sans; k++) {
			if (strcasecmp(conf->allowed_sans[k], value) == 0)
				return true;
		}
	}
}

static bool name_allowed(const gnutls_datum_t *der, const struct pl_webconf *conf)
{
	gnutls_x509_crt_t crt;
	bool allowed;

	if (conf->n_allowed_sans == 0)
		return true;
	if (gnutls_x509_crt_init(&crt) < 0)
		return false;
	allowed = gnutls_x509_crt_import(crt, der, GNUTLS_X509_FMT_DER) >= 0 && has_name(crt, conf);
	gnutls_x509_crt_deinit(crt);
	return allowed;
}

const char *pl_tls_refuses(void *arg, const struct pl_webconf *conf)
{
	gnutls_session_t session = arg;
	const gnutls_datum_t *shown;
	gnutls_typed_vdata_st purpose = { .type = GNUTLS_DT_KEY_PURPOSE_OID,
		.data = (unsigned char *)GNUTLS_KP_TLS_WWW_CLIENT };
	unsigned int n = 0, status = 0;

	if (conf->client_auth <= PL_WEB_REQUEST_CLIENT_CERT)
		return NULL;
	shown = gnutls_certificate_get_peers(session, &n);
	if (shown == NULL || n == 0)
		return conf->client_auth == PL_WEB_VERIFY_CLIENT_CERT_IF_GIVEN
			       ? NULL
			       : "A client certificate is needed.";
	if (conf->client_auth == PL_WEB_REQUIRE_ANY_CLIENT_CERT)
		return NULL;
	if (gnutls_certificate_verify_peers(session, &purpose, 1, &status) < 0 || status != 0)
		return "The client certificate is not trusted.";
	if (!name_allowed(&shown[0], conf))
		return "The client certificate has no allowed name.";
	return NULL;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The collector's configuration: one table of rows (config_rows.c) from which come the parser,
 * `pathline config check|dump|init` and the manual; and the options of every part that follow from
 * it. (The number of series is pl_metrics_series, the bound on memory pl_pipeline_memory.) Needs
 * neither the network nor privileges.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/conf.h"
#include "base/diag.h"
#include "decode/decode.h"
#include "detect/aggregate.h"
#include "detect/events.h"
#include "detect/kernel.h"
#include "record/packet.h"
#include "tap/rules.h"

#define PL_WORKERS_MAX 256

struct pl_config_source {
	char *uri;
	uint64_t sockets, rcvbuf_bytes;
};

/* Decoding of reports of one exporter or network; see struct pl_profile. */
struct pl_config_profile {
	char *match;
	unsigned int report_version, dialect, queue_word, tcp_placement;
	unsigned int timestamp_unit, latency_unit, embedded;
	bool dialect_pinned;
	char *dscp, *marker;
	uint64_t int_port, trailing_words, source_words;
};

/* The unit in which nodes report occupancies. */
struct pl_config_unit {
	char *nodes;                                  /* "7", "1-99", "all" */
	uint64_t queue_cell_bytes, buffer_cell_bytes; /* 0: unknown */
};

struct pl_config_level {
	bool on;
	uint64_t threshold, low, begin_hold_ns, end_hold_ns;
	uint64_t relative, relative_min;
	uint64_t step, step_relative, step_bits;
	bool step_first, anomaly;
	uint64_t anomaly_min;
	uint64_t limit_interval_ns, limit_burst;
};

/* The types of outputs, from kinds.def. */
enum pl_config_pin { PL_PIN_FALSE, PL_PIN_TRUE, PL_PIN_AUTO };

enum pl_config_output_type {
#define PL_OUTPUT_KIND(ID, id) PL_OUTPUT_##ID,
#include "pipeline/kinds.def"
#undef PL_OUTPUT_KIND
	PL_OUTPUT_KIND_MAX,
};

struct pl_config_output {
	char *name;
	bool unnamed;      /* the name was generated */
	unsigned int type; /* enum pl_config_output_type */
	char *path;
	/* as written; auto: the default of the type */
	unsigned int paths_word, events_word, values_word;
	bool paths, events, values; /* the resulting values */
	char *where;
	char *to; /* dta: a translator; ipfix: a collector */
	/* For outputs to servers. */
	char *url;
	unsigned int api; /* 0: v1, 1: v2 */
	char *database, *retention_policy, *org, *bucket;
	char *user, *password_file, *token_file;
	bool gzip;
	uint64_t interval_ns, max_keys, max_series;
	struct pl_conf_list labels; /* char *, NAME=VALUE */
	unsigned int form;          /* enum pl_webhook_form */
	char *link;
	uint64_t repeat_ns, resolve_ns;
	uint64_t batch_entries, batch_bytes, batch_age_ns, memory_bytes, timeout_ns;
	char *spool_path;
	uint64_t spool_bytes, spool_within_ns;
	unsigned int spool_full; /* 0: drop_oldest, 1: drop_newest */
	char *dead_letter_path;
	uint64_t dead_letter_bytes;
	struct {
		char *ca, *cert, *key;
		bool insecure;
	} tls;
	uint64_t rotate_size_bytes, rotate_age_ns, rotate_keep;
	struct {
		uint64_t events, paths, hops, flows, queues, drops, sync_ns;
	} keep; /* of regions */
	struct {
		char *region; /* a number at the translator, or a name here */
		unsigned int primitive, record, key_form, byte_order;
		struct pl_conf_list key, value; /* char *, names of fields */
		uint64_t list, ring;
		bool sequenced, immediate;
		const char *path; /* path of that region here, borrowed from `regions` */
	} dta;
	uint64_t queue_records;
	uint64_t buffer_bytes;
};

/* Telemetry memory, and its writer. */
enum pl_config_writer { PL_WRITER_OTHER, PL_WRITER_DTA, PL_WRITER_RDMA, PL_WRITER_OUTPUT };

#define PL_CONFIG_REGIONS_MAX  256
#define PL_CONFIG_PREFIXES_MAX 64
#define PL_CONFIG_ACCESS_MAX   256 /* prefixes of dta.allow */
/* Reserved by IEEE 802.1Q as the wildcard of management operations. */
#define PL_CONFIG_ANY_VLAN     4095

/* In the order of the words. */
enum pl_value_format {
	PL_VALUE_HEX,
	PL_VALUE_U8,
	PL_VALUE_U16BE,
	PL_VALUE_U16LE,
	PL_VALUE_U32BE,
	PL_VALUE_U32LE,
	PL_VALUE_U64BE,
	PL_VALUE_U64LE,
	PL_VALUE_RECORD, /* a record of pathline (enum pl_content of the region) */
};

struct pl_config_region {
	char *name, *path;
	unsigned int writer; /* enum pl_config_writer */
	struct {
		uint64_t every_ns; /* 0: it is not read */
		bool tell;         /* give values to the outputs */
		unsigned int from; /* 0: new ones, 1: all */
	} read;
	struct {
		unsigned int format; /* enum pl_value_format */
		uint64_t at;         /* offset of the number */
		char *name;          /* NULL: none */
	} value;
	struct {
		char *above, *below, *rate, *low, *high; /* numbers; NULL: none */
		uint64_t begin_hold_ns, end_hold_ns;
	} alert; /* rules on the values (region_alerts.h) */
};

/* The translator. */
struct pl_config_dta {
	char *listen;              /* NULL: no translator */
	char *to;                  /* roce://…; NULL: the translator's own regions */
	unsigned int form;         /* 0: tracking, 1: plain */
	struct pl_conf_list allow; /* char * */
	double reporter_rate;
	uint64_t reporters, nack_tries, nack_interval_ns, nack_port;
	struct pl_conf_list store_rates, above; /* char *, as dta/limits.h reads them */
	uint64_t flush_ns, sketch_reporters, epoch_ns;
	uint64_t batch, merge, cache_rows; /* 0: the translator's defaults */
	bool partial;
	char *keep_epochs;
};

/* A tap of this process. */
#define PL_CONFIG_TAPS_MAX 8

/* In the order of the words. */
enum pl_config_tap_records {
	PL_TAP_RECORDS_PACKETS,
	PL_TAP_RECORDS_FLOWS,
	PL_TAP_RECORDS_DNS,
	PL_TAP_RECORDS_DROPS
};

struct pl_config_tap {
	char *name;
	struct pl_conf_list sources, rules, to, vxlan_ports; /* char * */
	unsigned int records;                                /* enum pl_config_tap_records */
	uint64_t point, exporter;
	bool inner;
	struct {
		uint64_t idle_ns, active_ns, table;
		char *state; /* file; NULL: none */
	} flows;
};

/* A standing query. */
#define PL_CONFIG_QUERIES_MAX 64
#define PL_CONFIG_FROM_MAX    8 /* most sources of a query */

enum pl_config_query_reads { PL_QUERY_READS_RECORDS, PL_QUERY_READS_ROWS };

struct pl_config_query {
	char *name, *query;
	struct pl_conf_list from; /* char *: taps, topics, streams of the collector */
	unsigned int reads;       /* enum pl_config_query_reads */
	char *group;              /* Kafka consumer group that keeps the position; NULL: none */
	struct pl_conf_list to;   /* char * */
	char *value;              /* column; NULL: the first number that is no key */
	uint64_t groups, lateness_ns, ahead_ns, series;
};

/* A marking domain to watch. */
#define PL_CONFIG_MARKS_MAX 8

struct pl_config_marks {
	char *name;
	struct pl_conf_list sources, allow, points, links, zoom, to; /* char * */
	unsigned int method;                                         /* pl_config_marks_method */
	uint64_t period_ns, clock_error_ns, delay_ns, deviation_ns, wait_ns;
	double loss_above; /* per cent */
	uint64_t delay_above_ns, end_after, blocks;
};

enum pl_config_admit { PL_ADMIT_PROVEN, PL_ADMIT_FIRST };

enum pl_config_where { PL_DETECT_USER, PL_DETECT_KERNEL, PL_DETECT_BOTH, PL_DETECT_AUTO };

struct pl_config {
	struct pl_conf_list sources;  /* struct pl_config_source */
	struct pl_conf_list profiles; /* struct pl_config_profile */
	struct pl_conf_list units;    /* struct pl_config_unit */
	struct pl_conf_list outputs;  /* struct pl_config_output */
	unsigned int pin;             /* enum pl_config_pin */
	uint64_t drain_ns;
	char *user, *group; /* to switch to; NULL: stay */
	bool core_dumps;

	struct {
		uint64_t max_exporters, max_paths, sequence_gap_max, latency_max_ns;
		unsigned int admit; /* enum pl_config_admit */
		uint64_t gre_int_ethertype, geneve_int_class;
		/* Last: members before it are compared as bytes. char *, NAMESPACE=FORMAT */
		struct pl_conf_list ioam_time;
		struct pl_conf_list vxlan_ports; /* char * */
	} decode;
	struct {
		uint64_t max_queues, max_ports, max_links, max_paths, idle_ns, slot_ns;
	} aggregate;
	unsigned int detect_where; /* enum pl_config_where */
	bool detect_aggregates;    /* in the kernel too */
	struct {
		uint64_t sample;
		char *address, *node;
		struct pl_conf_list flags; /* char *, names of flags */
	} copy;
	struct {
		bool path_change, report_loss, packet_drop, loop, flow_start, flow_end;
		bool packet_loss, reordering;
		struct pl_config_level queue_depth, hop_latency, link_latency, tx_util,
			buffer_depth, flow_latency;
		struct {
			bool on;
			uint64_t threshold, max_ns, flows;
		} microburst;
		struct {
			uint64_t window_ns, windows, shift, deviations, begin_hold_ns, end_hold_ns;
		} learn;
		uint64_t node_silent_ns, keepalive_ns;
		uint64_t max_flows, max_queues, max_links, flow_idle_ns, idle_ns, forget_ns;
		uint64_t limit_interval_ns, limit_burst, loss_hold_ns;
	} detect;
	struct {
		uint64_t max_exporters; /* with series of their own */
		unsigned int buckets;   /* factor between bounds: 4, 2, 1.41, 1.19 */
	} metrics;
	struct {
		char *listen;              /* "off" = none */
		struct pl_conf_list names; /* char * */
		uint64_t max_connections, max_per_address;
		uint64_t max_streams, stream_buffer;
		char *socket;      /* NULL = none */
		char *config_file; /* TLS and users (web/webconf.h); NULL = none */
	} web;
	struct {
		unsigned int level, format;
	} log;
	struct pl_conf_list regions; /* struct pl_config_region */
	struct pl_config_dta dta;
	struct {
		char *interface; /* NULL: no memory server */
		char *listen;    /* "none" */
		uint64_t cm_port, peers, peers_each, silent_ns, sync_ns;
		struct pl_conf_list allow, allow_read, proxies; /* char * */
		uint64_t min_ttl, vlan, max_jump;               /* vlan: or PL_CONFIG_ANY_VLAN */
		bool read, check_mac, any_mac;
		struct {
			char *controller; /* NULL: no switch writes on its own */
			char *gid;
			uint64_t queue_pair, first;
			unsigned int version; /* 0: RoCEv1, 1: RoCEv2 */
		} peer_switch;
		uint64_t epoch_ns, save_every_ns;
		char *keep_epochs, *save;
	} rdma;
	struct pl_conf_list taps;     /* struct pl_config_tap */
	struct pl_conf_list queries;  /* struct pl_config_query */
	struct pl_conf_list marks;    /* struct pl_config_marks */
	struct pl_conf_ending ending; /* end of the file; not a key */
	char fault[64]; /* path of a wrong key, to find its line; not a key, empty afterwards */
};

extern const struct pl_conf_row pl_config_rows[];

/* Makes the configuration without a file: UDP 32766 and 54321, pages on 127.0.0.1:8400, no output.
 * Returns -ENOMEM. */
int pl_config_defaults(struct pl_config *ret);

/* Reads and checks a file, and the relations between its keys. Returns -EINVAL with diag; on
 * failure nothing is allocated. */
int pl_config_load(struct pl_config *ret, const char *path, struct pl_diag *diag);
/* As pl_config_load, for a reload: -EINVAL also when the file does not end as that of `now` did
 * (with a newline, with the marker "..."), or is still being written: then it may be incomplete. */
int pl_config_load_again(
	struct pl_config *ret, const char *path, const struct pl_config *now, struct pl_diag *diag);
int pl_config_parse(struct pl_config *ret, const char *name, const char *text, size_t len,
	struct pl_diag *diag);
void pl_config_done(struct pl_config *config);

/* Options of the parts. The profiles are a heap array that the caller frees. */
int pl_config_profiles(
	const struct pl_config *config, struct pl_profile **ret, struct pl_diag *diag);
/* Makes the units of occupancy, narrower ranges of nodes first. Returns -EINVAL with diag when
 * ranges overlap and neither is within the other. */
int pl_config_units(
	const struct pl_config *config, struct pl_core_units *ret, struct pl_diag *diag);
/* Parses pl_config_unit.nodes. Returns -EINVAL. */
int pl_config_parse_nodes(const char *text, uint64_t *ret_first, uint64_t *ret_last);
void pl_config_decode(const struct pl_config *config, struct pl_decode_options *ret);
void pl_config_aggregate(const struct pl_config *config, struct pl_aggregate_options *ret);
void pl_config_detect(const struct pl_config *config, struct pl_detect_options *ret);

/* Selects settled reports of which the kernel gives copies. */
void pl_config_copies(const struct pl_config *config, struct pl_kernel_wanted *ret);

/* Returns what identifies an output across reloads: its path, or its name. */
const char *pl_config_output_identity(const struct pl_config_output *output);

/* Returns the VXLAN ports of a checked list as a bit set (wire/tunnel_ports.h). */
uint64_t pl_config_vxlan_ports(const struct pl_conf_list *ports);
/* Writes the URI with its socket buffer, for pl_port_open. Returns false when it does not fit. */
bool pl_config_source_uri(const struct pl_config_source *source, char *dst, size_t cap);

unsigned int pl_config_sockets(const struct pl_config_source *source);
/* Returns where reports of a source are detected: USER, KERNEL or BOTH. */
enum pl_config_where pl_config_where(
	const struct pl_config *config, const struct pl_config_source *source);
/* Returns whether queues, ports, links and paths of some source are counted by the kernel, in
 * powers of two. */
bool pl_config_harvests(const struct pl_config *config);
/* Returns the number of workers of a source: one for each socket, and one that drives the detector
 * in the kernel. */
unsigned int pl_config_source_workers(
	const struct pl_config *config, const struct pl_config_source *source);
/* Number of workers: one for each socket of each source, one more where the kernel may detect, one
 * for regions, and one for events of queries and marks. */
unsigned int pl_config_workers(const struct pl_config *config);

/* ---- other services of the process (config_services.c) ---- */

/* Returns whether a region is read. One that an output of this process writes is not: its records
 * would circulate. */
bool pl_config_reads_region(const struct pl_config_region *region);
/* Returns whether any region is read, which takes a worker. */
bool pl_config_reads(const struct pl_config *config);
/* Returns whether there is a translator, a memory server, a tap, a query or a marking domain. */
bool pl_config_has_services(const struct pl_config *config);
/* Returns what is wrong in `rdma` beyond single keys; NULL: nothing. */
const char *pl_config_wrong_rdma(const struct pl_config *config);
/* Adds a region with default keys. Returns -ENOMEM. */
int pl_config_add_region(struct pl_config *config, enum pl_config_writer writer, const char *name,
	size_t name_len, const char *path);
/* Returns whether dta, rdma and the regions that they write are the same in both. */
bool pl_config_same_services(const struct pl_config *a, const struct pl_config *b);
/* Most series of these services on the metrics page. */
uint64_t pl_config_services_series(const struct pl_config *config);
/* Returns whether both have the same taps, apart from rules and points. */
bool pl_config_same_taps(const struct pl_config *a, const struct pl_config *b);
/* Makes the rules of a tap, whose texts were checked when the file was read. */
void pl_config_tap_rules(const struct pl_config_tap *tap, struct pl_tap_rules *ret);
/* Returns an enum pl_mark_method. */
unsigned int pl_config_marks_method(const struct pl_config_marks *marks);
bool pl_config_marks_is_region(const char *source);
bool pl_config_marks_is_topic(const char *source);
struct pl_mark_network;
/* Makes points and segments of a domain; as pl_mark_network_make. */
int pl_config_marks_network(
	const struct pl_config_marks *marks, struct pl_mark_network *ret, struct pl_diag *diag);
/* Returns whether both have the same marking domains, apart from keys that a reload changes. */
bool pl_config_same_marks(const struct pl_config *a, const struct pl_config *b);
/* Parses a query, a text or a name. Returns -EINVAL with diag: the character at fault. */
struct pl_query;
int pl_config_query_parse(const char *text, struct pl_query **ret, struct pl_diag *diag);
/* Finds the result column that is the value; -1: it has no number. Returns -EINVAL with diag when
 * the configured column is no number of the result. */
int pl_config_query_value(const struct pl_config_query *config, const struct pl_query *query,
	int *ret, struct pl_diag *diag);
/* Returns the collector's stream that an entry of the key from names (lang/lang.h): paths, hops,
 * events or values; PL_QUERY_STREAMS: none. */
unsigned int pl_config_query_stream(const char *from);
/* Returns the index of a tap, or of a marking domain (its tap is behind the configured taps); -1:
 * there is none with this name. */
int pl_config_tap_named(const struct pl_config *config, const char *name);
/* Finds the kind of records that a query reads of a topic: kind= in its URI, or the only one.
 * Returns -EINVAL with diag: there are several, or the query does not read it. */
int pl_config_query_topic(const struct pl_config_query *config, const struct pl_query *query,
	const char *uri, enum pl_flat_kind *ret, struct pl_diag *diag);
/* Makes a copy. Returns -ENOMEM. */
int pl_config_copy(struct pl_config *ret, const struct pl_config *config);

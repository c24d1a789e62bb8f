/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pathline completion: scripts for bash, zsh and fish, written from the command and option tables.
 * Each completes commands, options, the choices of options that have them, and files elsewhere.
 */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "cli/command.h"

static const char *const shells[] = { "bash", "zsh", "fish", NULL };

static const struct pl_opt none[] = { { .type = PL_OPT_END } };

static const struct pl_opt *options_of(const struct pl_command *cmd)
{
	return cmd->options != NULL ? cmd->options() : none;
}

static bool is_option(const struct pl_opt *o)
{
	return o->type != PL_OPT_HEADING;
}

static void put_words(struct pl_buf *out, const char *const *words)
{
	for (size_t i = 0; words != NULL && words[i] != NULL; i++)
		pl_buf_printf(out, "%s%s", i > 0 ? " " : "", words[i]);
}

/* Inside single quotes, for all three shells: a quote in the text becomes a typographic one. */
static void put_quoted(struct pl_buf *out, const char *text)
{
	for (; *text != '\0'; text++) {
		if (*text == '\'')
			pl_buf_str(out, "\xe2\x80\x99");
		else
			pl_buf_chr(out, *text);
	}
}

static void put_command_names(struct pl_buf *out)
{
	for (size_t i = 0; pl_commands[i] != NULL; i++)
		pl_buf_printf(out, "%s%s", i > 0 ? " " : "", pl_commands[i]->name);
}

/* Words that the first operand may be: those of the command, for help the commands too. */
static void put_operands(struct pl_buf *out, const struct pl_command *cmd)
{
	if (cmd == &pl_command_help) {
		put_command_names(out);
		pl_buf_chr(out, ' ');
	}
	put_words(out, cmd->words);
}

/* "-o|--output" as a case pattern. */
static void put_pattern(struct pl_buf *out, const struct pl_opt *o)
{
	if (o->short_name != 0)
		pl_buf_printf(out, "-%c|", o->short_name);
	pl_buf_printf(out, "--%s", o->name);
}

static void bash(struct pl_buf *out)
{
	pl_buf_str(out, "# bash completion for pathline; written by 'pathline completion bash'\n"
			"_pathline()\n{\n"
			"\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
			"\tlocal cmd=${COMP_WORDS[1]} options= words=\n"
			"\tCOMPREPLY=()\n"
			"\t# '=' is a word of its own in bash: --output = js\n"
			"\tif [[ $cur == '=' ]]; then\n"
			"\t\tcur=\n"
			"\telif [[ $prev == '=' ]]; then\n"
			"\t\tprev=${COMP_WORDS[COMP_CWORD-2]}\n"
			"\tfi\n"
			"\tif (( COMP_CWORD == 1 )); then\n"
			"\t\tCOMPREPLY=($(compgen -W '");
	put_command_names(out);
	pl_buf_str(out, " --help --version' -- \"$cur\"))\n\t\treturn\n\tfi\n\tcase $cmd in\n");
	for (size_t i = 0; pl_commands[i] != NULL; i++) {
		const struct pl_command *cmd = pl_commands[i];

		pl_buf_printf(out, "\t%s)\n\t\tcase $prev in\n", cmd->name);
		for (const struct pl_opt *o = options_of(cmd); o->type != PL_OPT_END; o++) {
			if (!is_option(o) || o->type == PL_OPT_FLAG)
				continue;
			pl_buf_str(out, "\t\t");
			put_pattern(out, o);
			if (o->type == PL_OPT_CHOICE) {
				pl_buf_str(out, ") COMPREPLY=($(compgen -W '");
				put_words(out, o->choices);
				pl_buf_str(out, "' -- \"$cur\")); return ;;\n");
			} else {
				pl_buf_str(out,
					") COMPREPLY=($(compgen -f -- \"$cur\")); return ;;\n");
			}
		}
		pl_buf_str(out, "\t\tesac\n\t\toptions='--help");
		for (const struct pl_opt *o = options_of(cmd); o->type != PL_OPT_END; o++) {
			if (is_option(o))
				pl_buf_printf(out, " --%s", o->name);
		}
		pl_buf_str(out, "'\n");
		if (cmd->words != NULL) {
			pl_buf_str(out, "\t\twords='");
			put_operands(out, cmd);
			pl_buf_str(out, "'\n");
		}
		pl_buf_str(out, "\t\t;;\n");
	}
	pl_buf_str(out, "\tesac\n"
			"\tif [[ $cur == -* ]]; then\n"
			"\t\tCOMPREPLY=($(compgen -W \"$options\" -- \"$cur\"))\n"
			"\telif [[ -n $words ]]; then\n"
			"\t\tCOMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
			"\telse\n"
			"\t\tCOMPREPLY=($(compgen -f -- \"$cur\"))\n"
			"\tfi\n"
			"}\n"
			"complete -o filenames -F _pathline pathline\n");
}

/* zsh reads [ ] : as its own inside a specification. */
static void put_zsh(struct pl_buf *out, const char *text)
{
	for (; *text != '\0'; text++) {
		if (*text == '[' || *text == ']' || *text == ':')
			pl_buf_chr(out, '\\');
		if (*text == '\'')
			pl_buf_str(out, "\xe2\x80\x99");
		else
			pl_buf_chr(out, *text);
	}
}

static void zsh_option(struct pl_buf *out, const struct pl_opt *o)
{
	const char *names[2] = { "", "" };
	char short_name[3] = { '-', o->short_name, '\0' };

	names[0] = o->short_name != 0 ? short_name : "";
	for (unsigned int i = o->short_name != 0 ? 0 : 1; i < 2; i++) {
		pl_buf_str(out, " \\\n\t\t\t'");
		if (o->type == PL_OPT_LIST)
			pl_buf_chr(out, '*');
		if (i == 0)
			pl_buf_str(out, names[0]);
		else
			pl_buf_printf(out, "--%s%s", o->name, o->type == PL_OPT_FLAG ? "" : "=");
		pl_buf_chr(out, '[');
		put_zsh(out, o->help);
		pl_buf_chr(out, ']');
		if (o->type == PL_OPT_CHOICE) {
			pl_buf_printf(out, ":%s:(", o->value != NULL ? o->value : "value");
			put_words(out, o->choices);
			pl_buf_chr(out, ')');
		} else if (o->type != PL_OPT_FLAG) {
			pl_buf_printf(out, ":%s:_files", o->value != NULL ? o->value : "value");
		}
		pl_buf_chr(out, '\'');
	}
}

static void zsh(struct pl_buf *out)
{
	pl_buf_str(out, "#compdef pathline\n"
			"# zsh completion for pathline; written by 'pathline completion zsh'\n"
			"_pathline() {\n"
			"\tlocal -a commands\n"
			"\tcommands=(\n");
	for (size_t i = 0; pl_commands[i] != NULL; i++) {
		pl_buf_printf(out, "\t\t'%s:", pl_commands[i]->name);
		put_zsh(out, pl_commands[i]->summary);
		pl_buf_str(out, "'\n");
	}
	pl_buf_str(out, "\t)\n"
			"\tif (( CURRENT == 2 )); then\n"
			"\t\t_describe command commands\n"
			"\t\treturn\n"
			"\tfi\n"
			"\tlocal cmd=$words[2]\n"
			"\tshift words\n"
			"\t(( CURRENT-- ))\n"
			"\tcase $cmd in\n");
	for (size_t i = 0; pl_commands[i] != NULL; i++) {
		const struct pl_command *cmd = pl_commands[i];

		pl_buf_printf(out, "\t%s)\n\t\t_arguments '--help[show help]'", cmd->name);
		for (const struct pl_opt *o = options_of(cmd); o->type != PL_OPT_END; o++) {
			if (is_option(o))
				zsh_option(out, o);
		}
		if (cmd->words != NULL) {
			pl_buf_str(out, " \\\n\t\t\t'*:operand:(");
			put_operands(out, cmd);
			pl_buf_str(out, ")'");
		} else {
			pl_buf_str(out, " \\\n\t\t\t'*:file:_files'");
		}
		pl_buf_str(out, "\n\t\t;;\n");
	}
	pl_buf_str(out, "\tesac\n}\n"
			"if [[ $funcstack[1] == _pathline ]]; then\n"
			"\t_pathline \"$@\"\n"
			"else\n"
			"\tcompdef _pathline pathline\n"
			"fi\n");
}

static void fish(struct pl_buf *out)
{
	pl_buf_str(out, "# fish completion for pathline; written by 'pathline completion fish'\n"
			"complete -c pathline -n __fish_use_subcommand -f\n");
	for (size_t i = 0; pl_commands[i] != NULL; i++) {
		const struct pl_command *cmd = pl_commands[i];

		pl_buf_printf(
			out, "complete -c pathline -n __fish_use_subcommand -a %s -d '", cmd->name);
		put_quoted(out, cmd->summary);
		pl_buf_str(out, "'\n");
		for (const struct pl_opt *o = options_of(cmd); o->type != PL_OPT_END; o++) {
			if (!is_option(o))
				continue;
			pl_buf_printf(out,
				"complete -c pathline -n '__fish_seen_subcommand_from %s' -l %s",
				cmd->name, o->name);
			if (o->short_name != 0)
				pl_buf_printf(out, " -s %c", o->short_name);
			if (o->type == PL_OPT_CHOICE) {
				pl_buf_str(out, " -x -a '");
				put_words(out, o->choices);
				pl_buf_chr(out, '\'');
			} else if (o->type != PL_OPT_FLAG) {
				pl_buf_str(out, " -r");
			}
			pl_buf_str(out, " -d '");
			put_quoted(out, o->help);
			pl_buf_str(out, "'\n");
		}
		if (cmd->words != NULL) {
			pl_buf_printf(out,
				"complete -c pathline -n '__fish_seen_subcommand_from %s' -f -a '",
				cmd->name);
			put_operands(out, cmd);
			pl_buf_str(out, "'\n");
		}
	}
}

static int run(int argc, char **argv)
{
	static void (*const writers[])(struct pl_buf *) = { bash, zsh, fish };
	struct pl_opt_list operands;
	struct pl_buf out;
	int code = PL_EXIT_USAGE;

	if (pl_command_parse(&pl_command_completion, argc, argv, &operands, &code) != 0)
		return code;
	pl_buf_init(&out);
	if (operands.n != 1) {
		code = pl_fail(PL_EXIT_USAGE, "completion needs one operand: bash, zsh or fish");
		goto done;
	}
	for (size_t i = 0; shells[i] != NULL; i++) {
		if (strcmp(operands.items[0], shells[i]) != 0)
			continue;
		writers[i](&out);
		if (out.failed) {
			code = pl_fail(PL_EXIT_FAILED, "out of memory");
		} else {
			fwrite(out.data, 1, out.len, stdout);
			code = PL_EXIT_OK;
		}
		goto done;
	}
	code = pl_fail(PL_EXIT_USAGE, "no completion for '%s'; there is bash, zsh and fish",
		operands.items[0]);
done:
	pl_buf_done(&out);
	pl_opt_list_done(&operands);
	return code;
}

const struct pl_command pl_command_completion = {
	.name = "completion",
	.summary = "write a completion script for a shell",
	.usage = "bash|zsh|fish",
	.description = "The script goes to standard output; 'make install' installs all three.",
	.examples = "  source <(pathline completion bash)\n"
		    "  pathline completion fish > ~/.config/fish/completions/pathline.fish\n",
	.words = shells,
	.run = run,
};

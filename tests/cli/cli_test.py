#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The command line as a whole: help of every command, exit codes, completion in a real bash, JSON forms."""
import csv
import glob
import io
import json
import os
import re
import shutil
import socket
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, tap  # noqa: E402
from lib.pathline import run  # noqa: E402
from lib.tap import ok, skip  # noqa: E402


def expect(args, code, out=None, err=None):
    r = run(*args)
    good = r.returncode == code and (out is None or out in r.stdout) and (err is None or err in r.stderr)
    ok(good, 'pathline %s: exit code %d' % (' '.join(args), code),
       'got %d\n%s\n%s' % (r.returncode, r.stdout[-500:], r.stderr[-500:]))
    return r


def commands():
    lines = run('help').stdout.split('Commands:\n')[1].split('\n\n')[0].splitlines()
    return [line.split()[0] for line in lines]


def counted_causes():
    """Their names, from the lists that the counters are made of."""
    top = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../..')
    lists = [open(path, encoding='utf-8').read() for path in glob.glob(top + '/src/*/*.def')]
    kinds = 'VERDICT|NOTE|ESCALATION|DTA_VERDICT|REFUSAL|RDMA_CAUSE|ROCE_FAULT'
    return re.findall(r'^PL_(?:%s)\(\w+, "(\w+)"' % kinds, '\n'.join(lists), re.M)


expect([], 2, err='Usage: pathline COMMAND')
expect(['help'], 0, out='Commands:')
expect(['--help'], 0, out='Commands:')
expect(['--version'], 0, out='pathline ')
expect(['dokter'], 2, err="did you mean 'doctor'?")
expect(['vers'], 2, err="did you mean 'version'?")
expect(['zzzzzzzz'], 2, err="unknown command 'zzzzzzzz'")
expect(['help', 'dokter'], 2, err='doctor')
expect(['help', 'cause'], 2, err="did you mean 'causes'?")
expect(['help', 'a', 'b'], 2)
causes = expect(['help', 'causes'], 0, out='  bounds ').stdout
ok(max(map(len, causes.splitlines())) <= 80, 'the page of causes is at most 80 columns wide')
missing = [cause for cause in counted_causes() if not re.search(r'^  %s +\S' % cause, causes, re.M)]
ok(len(counted_causes()) > 100 and not missing, 'every cause that is counted has its words on that page', missing)
expect(['help', 'events'], 0, out='  queue_depth ')
expect(['version', 'x'], 2)
expect(['version', '--outputt', 'json'], 2, err='--output')
expect(['version', '-o', 'xml'], 2)
for form in ('table', 'csv', 'jsonl'):
    gone = expect(['query', '-o', form, 'portscan', 'nofile.pcap'], 69, err='nofile.pcap: No such file')
    ok(gone.stdout == '', 'of a source that is not there no row is printed, not even the head', gone.stdout)
expect(['query', 'zorro', '--rule', 'mark proto=tcp dport=23 contains=zorro', 'nofile.pkt64'], 2, err='--rule is of packets that this command takes itself')
expect(['query', 'zorro', '--rule', 'marc proto=tcp', 'nofile.pcap'], 2, err='--rule marc proto=tcp: ')
expect(['query', 'SELECT src FROM packets', '--from', 'a.pcap', '--from', 'b.pcap', 'c.pcap'], 2, err='--from a.pcap and c.pcap: name all sources by --from, or none')
expect(['query', 'events', '--from', '5', '--from', '6', '.'], 2, err='--from 5 and 6: a list is read from one entry on')
expect(['query', 'events', '--rule', 'mark', '.'], 2, err='--rule is of packets')
expect(['query', 'portscan(threshold=abc)', 'nofile.pcap'], 2, err='column 20: threshold is a number such as 40, not "abc"')
expect(['query', 'SELECT abc FROM packets', 'nofile.pcap'], 2, err='unknown column "abc"\n')
long = expect(['query', 'SELECT src FROM packets WHERE ' + 'ttl = 1 and ' * 500 + 'nothing = 1', 'nofile.pcap'], 2, err='unknown column "nothing"')
ok(len(long.stderr) < 400 and re.search(r'\n  …(.*) = 1 and nothing = 1\n {53}', long.stderr), 'of a long question what is near the fault', long.stderr)
middle = expect(['query', 'SELECT src FROM drops WHERE ' + "place = 'ü' and " * 20 + 'nothing = 1' + ' and tcp' * 20, 'nofile.pcap'], 2)
line, mark = middle.stderr.splitlines()[1:3]
ok(line[len(mark) - 1:].startswith('nothing') and line.endswith('…') and line.startswith('  …') and len(line) < 110, 'the mark is under the character at fault', middle.stderr)
long = expect(['read', '--where', 'node == 1 and ' * 200 + 'nodx == 1', 'nofile.pcap'], 2, err='--where, column 2801: ')
ok(len(long.stderr) < 400 and long.stderr.splitlines()[2].index('^') == long.stderr.splitlines()[1].index('nodx'), 'of a long expression likewise', long.stderr)
expect(['completion', 'csh'], 2)
expect(['completion'], 2)
expect(['bench', 'nothing-of-this-name'], 2, err='--list')
for command in ('read', 'listen', 'tail', 'top', 'tap', 'query', 'lookup'):
    expect([command, '--where', 'node == 1', '--where', 'node == 2'], 2, err='option --where is given twice')
expect(['bench', '--pairs', '2'], 2, err='--pairs')

names = commands()
ok(len(names) >= 5, 'the overview lists the commands')
for name in names:
    page = expect(['help', name], 0, out='Usage: pathline ' + name).stdout
    # The help of bench is that of its program, which has the options.
    own = run(name, '--help').stdout
    ok(own == page if name != 'bench' else own.startswith('Usage: pathline bench') and '--pairs' in own, '%s --help is its help page' % name)
    man = run('help', '--man', name)
    ok(man.returncode == 0 and '.SH EXIT STATUS' in man.stdout, '%s has a manual page' % name)
    if shutil.which('mandoc'):
        lint = subprocess.run(['mandoc', '-T', 'lint', '-W', 'warning'], input=man.stdout, capture_output=True,
                              text=True)
        ok(lint.returncode == 0, "mandoc finds no fault in %s's page" % name, lint.stdout)
    else:
        skip("mandoc finds no fault in %s's page" % name, 'missing: mandoc')
    ok(max(map(len, page.splitlines())) <= 100, "%s's page is at most 100 columns wide" % name,
       max(page.splitlines(), key=len))
    unknown = run(name, '--no-such-option')
    ok(unknown.returncode == 2 and '--no-such-option' in unknown.stderr and unknown.stdout == '',
       '%s refuses an unknown option by name' % name, unknown.stderr)

version = json.loads(expect(['version', '-o', 'json'], 0).stdout)
ok(version['version'] == run('version').stdout.split()[1], 'both forms of version agree')
for part in 'kernel programs', 'RDMA NICs':
    ok(version.get(part, '').split(':')[0] in ('built in', 'none'), 'version says whether it has ' + part, version)

doctor = run('doctor', '-o', 'json')
report = json.loads(doctor.stdout)
ok(doctor.returncode == (69 if report['fail'] else 0), "doctor's exit code follows its findings")
ok(len(report['checks']) == report['ok'] + report['warn'] + report['fail'], 'doctor counts its findings')
ok(all(c['status'] == 'ok' or c.get('fix') for c in report['checks']), 'whatever is not ok has a remedy')
ok(len(run('doctor').stdout.splitlines()) >= len(report['checks']), "doctor's text has a line for each")
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
    try:
        taken.bind(('', 54321))
        checks = {c['name']: c for c in json.loads(run('doctor', '-o', 'json').stdout)['checks']}
        ok(checks['udp port 54321']['status'] == 'warn' and 'ss ' in checks['udp port 54321']['fix'],
           'doctor sees a port that is taken', checks['udp port 54321'])
    except OSError as error:
        skip('doctor sees a port that is taken', error)

full = run('version', stdout=open('/dev/full', 'w'))
ok(full.returncode == 1 and 'No space left' in full.stderr, 'a full disk is a failure', full.stderr)


def complete(*words):
    """What bash offers for the last word."""
    script = '''
        source "$1"; shift
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
        _pathline
        printf '%s\\n' "${COMPREPLY[@]}"
    '''
    r = subprocess.run(['bash', '-c', script, 'bash', completion, 'pathline'] + list(words), capture_output=True,
                       text=True)
    return [word for word in r.stdout.splitlines() if word] if r.returncode == 0 else r.stderr


completion = lab.path('pathline')
with open(completion, 'w') as out:
    out.write(run('completion', 'bash').stdout)
ok(subprocess.run(['bash', '-n', completion]).returncode == 0, 'bash reads its completion')
ok(set(names) <= set(complete('')), 'bash completes commands', complete(''))
ok(complete('doc') == ['doctor'], 'bash completes a command', complete('doc'))
ok('--output' in complete('doctor', '--o'), 'bash completes an option', complete('doctor', '--o'))
ok(complete('doctor', '-o', 'js') == ['json'], 'bash completes a choice', complete('doctor', '-o', 'js'))
ok(complete('doctor', '--output', '=', 'js') == ['json'], 'bash completes a choice after =')
ok(complete('completion', 'z') == ['zsh'], 'bash completes an operand', complete('completion', 'z'))
ok(complete('help', 'doc') == ['doctor'], 'bash completes the command of help')
ok(complete('help', 'cau') == ['causes'], 'and its topics', complete('help', 'cau'))
for shell in ('zsh', 'fish'):
    text = run('completion', shell).stdout
    ok(all(name in text for name in names), '%s: every command is in its completion' % shell)
    if shutil.which(shell):
        path = lab.path(shell)
        with open(path, 'w') as out:
            out.write(text)
        r = subprocess.run([shell, '-n', path], capture_output=True, text=True)
        ok(r.returncode == 0, '%s reads its completion' % shell, r.stderr)
    else:
        skip('%s reads its completion' % shell, 'missing: %s' % shell)

# Records of packets that an expression chooses, beside what tshark finds.
trace = lab.path('trace.pcap')
expect(['gen', 'packets', '--story', '--duration', '2s', '-w', trace], 0)
found = expect(['tap', '-o', 'jsonl', '--where', 'dport == 443 and pay_len > 0', trace], 0).stdout.splitlines()
if shutil.which('tshark'):
    seen = subprocess.run(['tshark', '-r', trace, '-Y', 'tcp.dstport == 443 && tcp.len > 0', '-T', 'fields', '-e', 'tcp.seq_raw'],
                          capture_output=True, text=True).stdout.split()
    ok(len(seen) > 100 and [json.loads(line)['tcp_seq'] for line in found] == [int(seq) for seq in seen], 'those that tshark chooses', len(found))
else:
    skip('those that tshark chooses', 'missing: tshark')
same = expect(['read', '--packets', '-o', 'jsonl', '--where', 'dport == 443 and pay_len > 0', trace], 0).stdout
ok(same.splitlines() == found, 'read --packets prints the same')
ok(len(expect(['read', '--packets', '-n', '3', '-o', 'csv', trace], 0).stdout.splitlines()) == 4, 'and as many as are asked for')
flows = expect(['tap', '--flows', '-o', 'jsonl', '--where', 'dport == 53', trace], 0).stdout.splitlines()
ok(flows and all(json.loads(flow)['dport'] == 53 for flow in flows), 'flows too')
ended = expect(['tap', '--flows', '-o', 'jsonl', '--where', 'end_reason == finished', trace], 0).stdout.splitlines()
ok(ended and all(json.loads(flow)['end_reason'] == 'finished' for flow in ended), 'words that are numbered from 1 on')


def unordered(rows):
    """Values as texts. The order of flows, and with it their number, is that of a table with a seed."""
    return sorted(sorted((name, str(value)) for name, value in row.items() if name != 'flow_seq') for row in rows)


# Each form has every value.
for kind in ([], ['--dns'], ['--flows']):
    of_form = {form: expect(['tap', *kind, '-o', form, trace], 0).stdout for form in ('jsonl', 'json', 'csv', 'text')}
    lines = unordered(json.loads(line) for line in of_form['jsonl'].splitlines())
    ok(len(lines) > 10 and unordered(json.loads(of_form['json'])) == lines, '%s: JSON has what JSON lines have' % ' '.join(['tap', *kind]), len(lines))
    rows = list(csv.DictReader(io.StringIO(of_form['csv']), strict=True))
    ok(unordered(rows) == lines, 'and CSV, in columns with the same names', rows[:1])
    rows = [dict(word.split('=', 1) for word in line.split(' ')) for line in of_form['text'].splitlines()]
    ok(unordered(rows) == lines, 'and text', rows[:1])
expect(['tap', '--flows', '--where', 'end_reason == finishd', trace], 2, err='one of idle, active, finished, evicted, shutdown')
expect(['tap', '--drops', '--where', 'reason == NO_SOCKETT'], 2, err="'pathline help fields' lists")
expect(['read', '--packets', 'packet:lo'], 2, err="are for 'pathline tap'")
expect(['tap', '--flows', '--to', 'influx://127.0.0.1:65536/db', trace], 2, err='not an address of a server')
expect(['tap', '--where', 'dport == 3', trace], 3)
expect(['tap', '--where', 'dprt == 3', trace], 2, err='did you mean "dport"')
expect(['tap', '--where', 'dport == 3', '--to', 'file:' + lab.path('x'), trace], 2, err='give -o too')
expect(['read', '--packets', '--dialect', 'geant', trace], 2, err='leave out the settings of reports')

sys.exit(tap.end())

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The kernel detector's accounts on the kernel of Debian's package, which boots in an emulated machine.
usage: old_kernel.py IMAGE PROGRAM FOLDER   IMAGE: the script that builds the guest; PROGRAM: what is run in it, TAP on
standard output; FOLDER: where the image is kept"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

IMAGE, PROGRAM, FOLDER = sys.argv[1:4]

INIT = """#!/bin/busybox sh
b=/bin/busybox
$b mount -t proc proc /proc
$b mount -t sysfs sys /sys
$b mount -t devtmpfs dev /dev
$b ip link set lo up
echo "# Linux $($b uname -r)"
/bin/program short
echo "exit code $?"
$b poweroff -f
"""


def archive(path):
    """Program, its libraries and an init of its own, to be unpacked over the guest's files."""
    with tempfile.TemporaryDirectory() as root:
        os.chmod(root, 0o755)  # it becomes the guest's
        def put(source, name):
            target = root + name
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy(source, target)

        put(PROGRAM, '/bin/program')
        for line in subprocess.run(['ldd', PROGRAM], capture_output=True, text=True, check=True).stdout.splitlines():
            found = re.search(r'(/\S+) \(', line)
            if found:
                put(os.path.realpath(found.group(1)), found.group(1))
        with open(root + '/begin', 'w') as f:
            f.write(INIT)
        os.chmod(root + '/begin', 0o755)
        names = subprocess.run(['find', '.'], cwd=root, capture_output=True, check=True).stdout
        with open(path, 'wb') as out:
            subprocess.run(['cpio', '--quiet', '-o', '-H', 'newc', '-R', '0:0'], cwd=root, input=names, stdout=out,
                           check=True)


def main():
    for program in ('qemu-system-x86_64', 'busybox', 'cpio', 'modinfo'):
        if shutil.which(program, path=os.environ['PATH'] + ':/usr/sbin:/sbin') is None:
            print('1..0 # SKIP %s is not there' % program)
            return 77
    subprocess.run([IMAGE, FOLDER], check=True, stdout=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        # The kernel unpacks archives that lie one behind the other.
        extra, both = os.path.join(folder, 'extra'), os.path.join(folder, 'initrd')
        archive(extra)
        with open(both, 'wb') as out:
            for part in (os.path.join(FOLDER, 'initrd'), extra):
                with open(part, 'rb') as f:
                    shutil.copyfileobj(f, out)
                out.write(bytes(-out.tell() % 512))
        run = subprocess.run(
            ['qemu-system-x86_64', '-accel', 'tcg', '-cpu', 'max', '-m', '1024', '-nodefaults', '-display', 'none',
             '-no-reboot', '-kernel', os.path.join(FOLDER, 'vmlinuz'), '-initrd', both, '-append',
             'console=ttyS0 quiet loglevel=4 panic=-1 rdinit=/begin', '-serial', 'stdio'],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, errors='replace')
    text = run.stdout.replace('\r', '')
    print(text)
    # Exit code 77 would be a detector that this kernel does not take: here that is a failure.
    return 0 if 'exit code 0' in text else 1


sys.exit(main())

"""Hands a command line, with its streams, to the server at $COMMAND_SERVER, and exits as the command did.

python command_client.py PROGRAM [ARGUMENTS...]
"""

import json
import os
import socket
import sys

request = {
    "program": sys.argv[1],
    "arguments": sys.argv[2:],
    "folder": os.getcwd(),
    "environment": dict(os.environ),
}
with socket.socket(socket.AF_UNIX) as connection:
    connection.connect(os.environ["COMMAND_SERVER"])
    text = json.dumps(request).encode()
    socket.send_fds(connection, [len(text).to_bytes(4, "big")], [0, 1, 2])
    connection.sendall(text)
    answer = connection.recv(1)
sys.exit(answer[0] if answer else 255)

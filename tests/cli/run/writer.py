"""A program of a run: `writer.py KEY=NUMBER...` commits tables, one by one, over REST.

It loads little, so that it starts quickly, and finds the branch in its environment. A word without
`=` is a number of seconds to sleep, or `exit:CODE`.
"""

import http.client
import json
import os
import sys
import time
from urllib.parse import quote, urlsplit

address = urlsplit(os.environ["NESSIE_ENDPOINT"])
branch = os.environ.get("WRITER_REF", os.environ["NESSIE_REF"])
connection = http.client.HTTPConnection(address.hostname, address.port)
headers = {"content-type": "application/json", "nessie-client-spec": "2"}
if "NESSIE_AUTH_TOKEN" in os.environ:
    headers["authorization"] = f"Bearer {os.environ['NESSIE_AUTH_TOKEN']}"


def send(method, path, body=None):
    connection.request(method, f"{address.path}/{path}", body and json.dumps(body), headers)
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


for word in sys.argv[1:]:
    name, equals, number = word.partition("=")
    if not equals:
        if word.startswith("exit:"):
            sys.exit(int(word[5:]))
        time.sleep(float(word))
        continue
    path = f"trees/{quote(branch, safe='')}"
    status, content = send("GET", f"{path}/contents/{name}")
    table = {"type": "ICEBERG_TABLE", "metadataLocation": f"s3://lake/{name}-{number}.json"}
    table |= {"snapshotId": int(number), "schemaId": 0, "specId": 0, "sortOrderId": 0}
    if status == 200:
        table["id"] = content["content"]["id"]
    put = {"type": "PUT", "key": {"elements": name.split(".")}, "content": table}
    head = send("GET", path)[1]["reference"]["hash"]
    commit = {"commitMeta": {"message": f"write {name}"}, "operations": [put]}
    status, answer = send("POST", f"{path}@{head}/history/commit", commit)
    if status != 200:
        sys.stderr.write(f"{status} {answer['message']}\n")
        sys.exit(9)

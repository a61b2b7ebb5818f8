#!/usr/bin/env python3
"""kafka-python against the Kafka listener: a program that checks itself.

    client_kafka_python.py HOST:PORT [--sasl USER:TOKEN] [--resume NAME]

Prints each check it has passed and exits 0, or says what differed and exits 1. The last line it prints is `left NAME`:
after a restart of the broker, `--resume NAME` checks that topic and committed offsets are still there.
"""

import argparse
import sys
import threading
import time
import uuid

import kafka
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient, NewPartitions, NewTopic
from kafka.errors import KafkaError, TopicAlreadyExistsError

PATIENCE = 60


def check(what, found, expected):
    if found != expected:
        sys.exit(f"{what}: found {found!r}, expected {expected!r}")


def ok(what):
    print("ok", what, flush=True)


class Client:
    def __init__(self, bootstrap, sasl):
        self.common = self.settings(bootstrap, sasl)
        self.admin = KafkaAdminClient(**self.common)

    @staticmethod
    def settings(bootstrap, sasl):
        if not sasl:
            return {"bootstrap_servers": bootstrap}
        user, token = sasl.split(":", 1)
        return {
            "bootstrap_servers": bootstrap, "security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN",
            "sasl_plain_username": user, "sasl_plain_password": token,
        }

    def producer(self, **more):
        return KafkaProducer(**self.common, **more)

    def consumer(self, *topics, **more):
        settings = {"auto_offset_reset": "earliest", "enable_auto_commit": False}
        return KafkaConsumer(*topics, **(self.common | settings | more))

    def create(self, name, partitions, config=None):
        self.admin.create_topics([NewTopic(name, partitions, 1, topic_configs=config or {})])


def produce(producer, topic, pairs, headers=None):
    sent = [producer.send(topic, key=key, value=value, headers=headers or []) for key, value in pairs]
    producer.flush(PATIENCE)
    return [(done.partition, done.offset) for done in (one.get(PATIENCE) for one in sent)]


def read(consumer, count):
    got, end = [], time.monotonic() + PATIENCE
    while len(got) < count:
        if time.monotonic() > end:
            sys.exit(f"{len(got)} of {count} records came within {PATIENCE} s")
        for batch in consumer.poll(timeout_ms=200).values():
            got += batch
    return got


def topics(client, name):
    client.create(name, 3, {"retention.ms": "86400000"})
    check("listed", name in client.admin.list_topics(), True)
    check("partitions", len(client.admin.describe_topics([name])[0]["partitions"]), 3)
    client.admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, name)])
    client.admin.create_partitions({name: NewPartitions(4)})
    check("partitions", len(client.admin.describe_topics([name])[0]["partitions"]), 4)
    try:
        client.create(name, 1)
        sys.exit("a topic was made twice")
    except TopicAlreadyExistsError:
        pass
    ok("topics created, described, grown, refused")


def records(client, name):
    sent = []
    for codec in [None, "gzip"] + [codec for codec in ["snappy", "lz4", "zstd"] if can(codec)]:
        pairs = [(f"key-{n % 7}".encode(), f"{codec}-{n}".encode()) for n in range(100)]
        producer = client.producer(compression_type=codec, linger_ms=5)
        produce(producer, name, pairs, headers=[("codec", str(codec).encode())])
        producer.close()
        sent += pairs
    consumer = client.consumer(name, group_id="g-" + name)
    got = read(consumer, len(sent))
    check("records", sorted((one.key, one.value) for one in got), sorted(sent))
    first = next(one for one in got if one.value == b"gzip-0")
    check("headers", first.headers, [("codec", b"gzip")])
    consumer.close()
    ok(f"records with keys, headers and {len(sent) // 100 - 1} compressions, read from the beginning")


def can(codec):
    return bool(getattr(kafka.codec, f"has_{codec}")())


def acks_and_idempotence(client, name):
    topic = name + "-once"
    client.create(topic, 1)
    for acks in [0, 1, "all"]:
        producer = client.producer(acks=acks, enable_idempotence=False)
        producer.send(topic, value=str(acks).encode())
        producer.flush(PATIENCE)
        producer.close()
    producer = client.producer(enable_idempotence=True, acks="all")
    places = produce(producer, topic, [(b"k", str(n).encode()) for n in range(500)])
    check("offsets", places, [(0, n + 3) for n in range(500)])
    producer.close()
    consumer = client.consumer()
    consumer.assign([TopicPartition(topic, 0)])
    consumer.seek_to_beginning()
    check("values", [one.value for one in read(consumer, 503)][3:], [str(n).encode() for n in range(500)])
    consumer.close()
    ok("acks 0, 1 and all; an idempotent producer")


def offsets(client, name):
    topic = name + "-times"
    client.create(topic, 1)
    producer = client.producer()
    for at in [1000, 2000, 3000]:
        producer.send(topic, value=b"x", timestamp_ms=at).get(PATIENCE)
    producer.close()
    place = TopicPartition(topic, 0)
    consumer = client.consumer()
    check("beginning", consumer.beginning_offsets([place]), {place: 0})
    check("end", consumer.end_offsets([place]), {place: 3})
    check("time", consumer.offsets_for_times({place: 1500})[place].offset, 1)
    consumer.close()
    ok("offsets by place and time")


class Member(threading.Thread):
    """A consumer of a group that reads until it is told to stop."""

    def __init__(self, client, topic, group):
        super().__init__(daemon=True)
        self.consumer = client.consumer(
            topic, group_id=group, session_timeout_ms=6000, heartbeat_interval_ms=500, max_poll_interval_ms=60000,
        )
        self.owned, self.got, self.stopping = set(), [], threading.Event()

    def run(self):
        while not self.stopping.is_set():
            for batch in self.consumer.poll(timeout_ms=100).values():
                self.got += batch
            self.owned = {part.partition for part in self.consumer.assignment()}
        self.consumer.commit()
        self.consumer.close()

    def stop(self):
        self.stopping.set()
        self.join(PATIENCE)


def until(what, holds):
    end = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > end:
            sys.exit(f"{what} did not happen within {PATIENCE} s")
        time.sleep(0.05)


def groups(client, name):
    topic, group = name + "-shared", "shared-" + name
    client.create(topic, 4)
    one = Member(client, topic, group)
    one.start()
    until("the first assignment", lambda: len(one.owned) == 4)
    two = Member(client, topic, group)
    two.start()
    until("the shared assignment", lambda: len(one.owned) == 2 and len(two.owned) == 2 and not one.owned & two.owned)
    check("listed", group in str(client.admin.list_groups()), True)
    check("described", len(members(client, group)), 2)
    producer = client.producer()
    places = produce(producer, topic, [(str(n).encode(), str(n).encode()) for n in range(100)])
    check("partitions written", {partition for partition, _ in places}, {0, 1, 2, 3})
    until("all records", lambda: len(one.got) + len(two.got) >= 100)
    check("each record once", sorted(int(m.value) for m in one.got + two.got), list(range(100)))
    two.stop()
    until("the takeover", lambda: len(one.owned) == 4)
    one.stop()
    ok("a group of two: assigned, shared, described, taken over")
    produce(producer, topic, [(b"later", b"later")])
    producer.close()
    again = client.consumer(topic, group_id=group)
    check("after a restart of the consumer", [m.value for m in read(again, 1)], [b"later"])
    again.commit()
    again.close()
    ok("committed offsets outlive the consumer")
    client.admin.delete_groups(["g-" + name])
    ok("a group deleted")


def members(client, group):
    described = client.admin.describe_groups([group])
    return described[group]["members"] if isinstance(described, dict) else described[0].members


def cleanup(client, name):
    client.admin.delete_topics([name + "-once", name + "-times"])
    check("deleted", name + "-once" in client.admin.list_topics(), False)
    ok("topics deleted")


def denied(bootstrap, sasl):
    user = sasl.split(":", 1)[0]
    try:
        # It goes on trying for as long as it may.
        settings = Client.settings(bootstrap, user + ":wrong")
        KafkaAdminClient(**settings, bootstrap_timeout_ms=2000).list_topics()
        sys.exit("a wrong token was let in")
    except KafkaError:
        ok("a wrong token refused")


def resume(client, name):
    topic, group = name + "-shared", "shared-" + name
    consumer = client.consumer(group_id=group)
    parts = [TopicPartition(topic, n) for n in range(4)]
    check("committed", sum(consumer.committed(part) or 0 for part in parts), 101)
    check("ends", sum(consumer.end_offsets(parts).values()), 101)
    consumer.close()
    ok("topic and committed offsets outlive the broker")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bootstrap")
    parser.add_argument("--sasl")
    parser.add_argument("--resume")
    args = parser.parse_args()
    print("kafka-python", kafka.__version__, flush=True)
    client = Client(args.bootstrap, args.sasl)
    if args.resume:
        return resume(client, args.resume)
    name = "kafka-python-" + uuid.uuid4().hex[:8]
    if args.sasl:
        denied(args.bootstrap, args.sasl)
    for step in [topics, records, acks_and_idempotence, offsets, groups, cleanup]:
        step(client, name)
    print("left", name, flush=True)


main()

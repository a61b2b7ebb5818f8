#!/usr/bin/env python3
"""confluent-kafka (librdkafka) against the Kafka listener: a program that checks itself.

    client_confluent.py HOST:PORT [--sasl USER:TOKEN] [--resume NAME]

Prints each check it has passed and exits 0, or says what differed and exits 1. The last line it prints is `left NAME`:
after a restart of the broker, `--resume NAME` checks that topic and committed offsets are still there.
"""

import argparse
import sys
import time
import uuid

import confluent_kafka
from confluent_kafka import (
    Consumer, ConsumerGroupTopicPartitions, KafkaError, KafkaException, Producer, TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewPartitions, NewTopic, OffsetSpec, ResourceType,
)

PATIENCE = 60


def check(what, found, expected):
    if found != expected:
        sys.exit(f"{what}: found {found!r}, expected {expected!r}")


def ok(what):
    print("ok", what, flush=True)


class Client:
    def __init__(self, bootstrap, sasl):
        self.common = {"bootstrap.servers": bootstrap, "socket.timeout.ms": 10000}
        if sasl:
            user, token = sasl.split(":", 1)
            self.common |= {
                "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN",
                "sasl.username": user, "sasl.password": token,
            }
        self.admin = AdminClient(self.common)

    def producer(self, **more):
        return Producer(self.common | {key.replace("_", "."): value for key, value in more.items()})

    def consumer(self, group, **more):
        settings = {
            "group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False,
            "session.timeout.ms": 6000, "heartbeat.interval.ms": 500,
        }
        return Consumer(self.common | settings | {key.replace("_", "."): value for key, value in more.items()})

    def create(self, name, partitions, config=None):
        topic = NewTopic(name, num_partitions=partitions, replication_factor=1, config=config or {})
        self.admin.create_topics([topic])[name].result(PATIENCE)


def produce(producer, topic, records, **more):
    """Produces (key, value) pairs, and answers the (partition, offset) of each."""
    places, failures = [], []

    def delivered(error, message):
        failures.append(error) if error else places.append((message.partition(), message.offset()))

    for key, value in records:
        producer.produce(topic, key=key, value=value, on_delivery=delivered, **more)
        producer.poll(0)
    check("unsent", producer.flush(PATIENCE), 0)
    check("failures", failures, [])
    return places


def read(consumers, count):
    """Polls until so many records have come; answers them."""
    got, end = [], time.monotonic() + PATIENCE
    while len(got) < count:
        if time.monotonic() > end:
            sys.exit(f"{len(got)} of {count} records came within {PATIENCE} s")
        for consumer in consumers:
            message = consumer.poll(0.05)
            if message is None:
                continue
            if message.error():
                sys.exit(f"consuming: {message.error()}")
            got.append(message)
    return got


def until(what, holds, consumers):
    """Polls until the condition holds, and answers what came meanwhile."""
    got, end = [], time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > end:
            sys.exit(f"{what} did not happen within {PATIENCE} s")
        for consumer in consumers:
            message = consumer.poll(0.05)
            if message is not None and not message.error():
                got.append(message)
    return got


def topics(client, name):
    client.create(name, 3, {"retention.ms": "86400000", "cleanup.policy": "delete"})
    found = client.admin.list_topics(name, timeout=PATIENCE).topics[name]
    check("partitions", sorted(found.partitions), [0, 1, 2])
    resource = ConfigResource(ResourceType.TOPIC, name)
    configs = client.admin.describe_configs([resource])[resource].result(PATIENCE)
    check("retention.ms", configs["retention.ms"].value, "86400000")
    change = ConfigResource(ResourceType.TOPIC, name, incremental_configs=[
        ConfigEntry("retention.ms", "3600000", incremental_operation=AlterConfigOpType.SET),
    ])
    client.admin.incremental_alter_configs([change])[change].result(PATIENCE)
    configs = client.admin.describe_configs([resource])[resource].result(PATIENCE)
    check("retention.ms after the change", configs["retention.ms"].value, "3600000")
    client.admin.create_partitions([NewPartitions(name, 4)])[name].result(PATIENCE)
    for config, code in [({"segment.ms": "5"}, KafkaError.INVALID_CONFIG), ({}, KafkaError.TOPIC_ALREADY_EXISTS)]:
        try:
            client.create(name if not config else name + "-odd", 1, config)
            sys.exit(f"a topic that cannot be made was made: {config}")
        except KafkaException as error:
            check("code", error.args[0].code(), code)
    ok("topics created, described, altered, grown, refused")


def records(client, name):
    sent = []
    for codec in ["none", "gzip", "snappy", "lz4", "zstd"]:
        pairs = [(f"key-{n % 7}".encode(), f"{codec}-{n}".encode()) for n in range(200)]
        places = produce(client.producer(compression_type=codec, linger_ms=5), name, pairs,
                         headers=[("codec", codec.encode()), ("empty", b""), ("none", None)])
        check("delivered", len(places), 200)
        sent += pairs
    large = [(b"large", b"x" * 900_000)]
    produce(client.producer(message_max_bytes=1_000_000), name, large)
    consumer = client.consumer("g-" + name, fetch_message_max_bytes=2_000_000)
    consumer.subscribe([name])
    got = read([consumer], len(sent) + 1)
    check("records", sorted((m.key(), m.value()) for m in got), sorted(sent + large))
    first = next(message for message in got if message.value() == b"zstd-0")
    check("headers", first.headers(), [("codec", b"zstd"), ("empty", b""), ("none", None)])
    by_key = {}
    for message in got:
        by_key.setdefault(message.key(), set()).add(message.partition())
    check("partitions of one key", {len(places) for places in by_key.values()}, {1})
    consumer.commit(asynchronous=False)
    consumer.close()
    ok("records with keys, headers and every compression, read from the beginning")


def acks(client, name):
    for acks in ["0", "1", "all"]:
        produce(client.producer(acks=acks), name, [(None, f"acks-{acks}".encode())])
    client.create(name + "-acks", 1)
    for acks in ["0", "1", "all"]:
        produce(client.producer(acks=acks), name + "-acks", [(None, acks.encode())])
    consumer = client.consumer("acks-" + name)
    consumer.assign([TopicPartition(name + "-acks", 0, 0)])
    check("values", {message.value() for message in read([consumer], 3)}, {b"0", b"1", b"all"})
    consumer.close()
    ok("acks 0, 1 and all")


def idempotence(client, name):
    topic = name + "-once"
    client.create(topic, 1)
    pairs = [(b"k", str(n).encode()) for n in range(2000)]
    places = produce(client.producer(enable_idempotence=True, linger_ms=1), topic, pairs)
    check("offsets", places, [(0, n) for n in range(2000)])
    consumer = client.consumer("once-" + name)
    consumer.assign([TopicPartition(topic, 0, 0)])
    check("order", [message.value() for message in read([consumer], 2000)], [value for _, value in pairs])
    consumer.close()
    transactional = client.producer(transactional_id="t-" + name)
    try:
        transactional.init_transactions(10)
        sys.exit("transactions were let in")
    except KafkaException:
        pass
    ok("an idempotent producer; transactions refused")


def offsets(client, name):
    topic = name + "-times"
    client.create(topic, 1)
    producer = client.producer()
    for at in [1000, 2000, 3000]:
        producer.produce(topic, value=str(at).encode(), timestamp=at)
    check("unsent", producer.flush(PATIENCE), 0)
    consumer = client.consumer("times-" + name)
    check("watermarks", consumer.get_watermark_offsets(TopicPartition(topic, 0), PATIENCE), (0, 3))
    found = consumer.offsets_for_times([TopicPartition(topic, 0, 1500)], PATIENCE)
    check("offset of a time", found[0].offset, 1)
    consumer.close()
    place = TopicPartition(topic, 0)
    for spec, expected in [
        (OffsetSpec.earliest(), 0), (OffsetSpec.latest(), 3), (OffsetSpec.max_timestamp(), 2),
        (OffsetSpec.for_timestamp(2500), 2),
    ]:
        check(f"{spec}", client.admin.list_offsets({place: spec})[place].result(PATIENCE).offset, expected)
    ok("offsets by place and time")


def groups(client, name):
    topic, group = name + "-shared", "shared-" + name
    client.create(topic, 4)
    owned = {"one": set(), "two": set()}

    def track(who):
        def assigned(consumer, parts):
            owned[who] = {part.partition for part in parts}

        def revoked(consumer, parts):
            owned[who] -= {part.partition for part in parts}

        return {"on_assign": assigned, "on_revoke": revoked}

    one, two = client.consumer(group), client.consumer(group)
    one.subscribe([topic], **track("one"))
    until("the first assignment", lambda: len(owned["one"]) == 4, [one])
    two.subscribe([topic], **track("two"))
    shared = lambda: len(owned["one"]) == 2 and len(owned["two"]) == 2 and not owned["one"] & owned["two"]
    until("the shared assignment", shared, [one, two])
    described = client.admin.describe_consumer_groups([group])[group].result(PATIENCE)
    check("state", described.state.name, "STABLE")
    check("members", len(described.members), 2)
    listed = client.admin.list_consumer_groups().result(PATIENCE)
    check("listed", group in [one.group_id for one in listed.valid], True)
    pairs = [(str(n).encode(), str(n).encode()) for n in range(100)]
    places = produce(client.producer(), topic, pairs)
    check("partitions written", {partition for partition, _ in places}, {0, 1, 2, 3})
    got = read([one, two], 100)
    check("each record once", sorted(int(message.value()) for message in got), list(range(100)))
    one.commit(asynchronous=False)
    two.commit(asynchronous=False)
    two.close()
    until("the takeover", lambda: len(owned["one"]) == 4, [one])
    one.close()
    ok("a group of two: assigned, shared, described, taken over")
    committed = client.admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
    parts = committed[group].result(PATIENCE).topic_partitions
    check("committed", sum(part.offset for part in parts), 100)
    produce(client.producer(), topic, [(b"later", b"later")])
    again = client.consumer(group)
    again.subscribe([topic])
    check("after a restart of the consumer", [message.value() for message in read([again], 1)], [b"later"])
    again.commit(asynchronous=False)
    again.close()
    ok("committed offsets outlive the consumer")
    client.admin.delete_consumer_groups(["g-" + name])["g-" + name].result(PATIENCE)
    ok("a group deleted")


def static_member(client, name):
    topic, group = name + "-shared", "static-" + name
    owned = []
    settings = {"group_instance_id": "instance-1"}
    first = client.consumer(group, **settings)
    first.subscribe([topic], on_assign=lambda _, parts: owned.append(len(parts)))
    until("the assignment", lambda: owned == [4], [first])
    member = first.memberid()
    first.close()
    second = client.consumer(group, **settings)
    second.subscribe([topic], on_assign=lambda _, parts: owned.append(len(parts)))
    until("the assignment", lambda: owned == [4, 4], [second])
    check("another member id", second.memberid() != member, True)
    second.close()
    ok("a static member comes back")


def cleanup(client, name):
    for topic in [name + "-acks", name + "-times", name + "-once"]:
        client.admin.delete_topics([topic])[topic].result(PATIENCE)
    left = client.admin.list_topics(timeout=PATIENCE).topics
    check("deleted", name + "-once" in left, False)
    ok("topics deleted")


def denied(bootstrap, sasl):
    user = sasl.split(":", 1)[0]
    seen = []
    settings = {
        "bootstrap.servers": bootstrap, "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN",
        "sasl.username": user, "sasl.password": "wrong", "error_cb": seen.append,
    }
    try:
        AdminClient(settings).list_topics(timeout=5)
        sys.exit("a wrong token was let in")
    except KafkaException:
        pass
    ok("a wrong token refused")


def resume(client, name):
    topic, group = name + "-shared", "shared-" + name
    consumer = client.consumer(group)
    parts = consumer.committed([TopicPartition(topic, n) for n in range(4)], timeout=PATIENCE)
    check("committed", sum(part.offset for part in parts), 101)
    ends = [consumer.get_watermark_offsets(TopicPartition(topic, n), PATIENCE)[1] for n in range(4)]
    check("ends", sum(ends), 101)
    produce(client.producer(), topic, [(b"k", b"after the restart")])
    consumer.subscribe([topic])
    check("the next record", [message.value() for message in read([consumer], 1)], [b"after the restart"])
    consumer.close()
    ok("topic and committed offsets outlive the broker")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bootstrap")
    parser.add_argument("--sasl")
    parser.add_argument("--resume")
    args = parser.parse_args()
    print("confluent-kafka", confluent_kafka.__version__, "librdkafka", confluent_kafka.libversion()[0], flush=True)
    client = Client(args.bootstrap, args.sasl)
    if args.resume:
        return resume(client, args.resume)
    name = "confluent-" + uuid.uuid4().hex[:8]
    if args.sasl:
        denied(args.bootstrap, args.sasl)
    for step in [topics, records, acks, idempotence, offsets, groups, static_member, cleanup]:
        step(client, name)
    print("left", name, flush=True)


main()

#!/usr/bin/env python3
"""aiokafka against the Kafka listener: a program that checks itself.

    client_aiokafka.py HOST:PORT [--sasl USER:TOKEN] [--resume NAME]

Prints each check it has passed and exits 0, or says what differed and exits 1. The last line it prints is `left NAME`:
after a restart of the broker, `--resume NAME` checks that topic and committed offsets are still there.
"""

import argparse
import asyncio
import sys
import uuid

import aiokafka
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
from aiokafka.errors import KafkaError

PATIENCE = 60


def check(what, found, expected):
    if found != expected:
        sys.exit(f"{what}: found {found!r}, expected {expected!r}")


def ok(what):
    print("ok", what, flush=True)


class Client:
    def __init__(self, bootstrap, sasl):
        self.common = {"bootstrap_servers": bootstrap}
        if sasl:
            user, token = sasl.split(":", 1)
            self.common |= {
                "security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN",
                "sasl_plain_username": user, "sasl_plain_password": token,
            }

    def producer(self, **more):
        return AIOKafkaProducer(**self.common, **more)

    def consumer(self, *topics, **more):
        settings = {"auto_offset_reset": "earliest", "enable_auto_commit": False}
        return AIOKafkaConsumer(*topics, **(self.common | settings | more))

    async def admin(self):
        admin = AIOKafkaAdminClient(**self.common)
        await admin.start()
        return admin

    async def create(self, name, partitions, config=None):
        admin = await self.admin()
        answer = await admin.create_topics([NewTopic(name, partitions, 1, topic_configs=config or {})])
        await admin.close()
        return answer.topic_errors[0][1]


async def produce(client, topic, pairs, headers=None, **more):
    async with client.producer(**more) as producer:
        sent = [await producer.send(topic, key=key, value=value, headers=headers or []) for key, value in pairs]
        return [(done.partition, done.offset) for done in await asyncio.gather(*sent)]


async def read(consumers, count):
    got = []

    async def poll():
        while len(got) < count:
            for consumer in consumers:
                for batch in (await consumer.getmany(timeout_ms=50)).values():
                    got.extend(batch)

    await asyncio.wait_for(poll(), PATIENCE)
    return got


async def topics(client, name):
    check("created", await client.create(name, 3, {"retention.ms": "86400000"}), 0)
    check("created twice", await client.create(name, 3), 36)
    check("unknown configuration", await client.create(name + "-odd", 1, {"segment.ms": "5"}), 40)
    admin = await client.admin()
    check("listed", name in await admin.list_topics(), True)
    await admin.create_partitions({name: NewPartitions(4)})
    described = await admin.describe_topics([name])
    check("partitions", len(described[0]["partitions"]), 4)
    await admin.close()
    ok("topics created, described, grown, refused")


async def records(client, name):
    sent = []
    for codec in [None, "gzip", "snappy", "lz4", "zstd"]:
        pairs = [(f"key-{n % 7}".encode(), f"{codec}-{n}".encode()) for n in range(100)]
        try:
            await produce(client, name, pairs, [("codec", str(codec).encode())], compression_type=codec)
        except RuntimeError as missing:
            # The library for this compression is not installed beside aiokafka.
            print("without", codec, missing, flush=True)
            continue
        sent += pairs
    async with client.consumer(name, group_id="g-" + name) as consumer:
        got = await read([consumer], len(sent))
    check("records", sorted((one.key, one.value) for one in got), sorted(sent))
    first = next(one for one in got if one.value == b"gzip-0")
    check("headers", first.headers, (("codec", b"gzip"),))
    ok(f"records with keys, headers and {len(sent) // 100 - 1} compressions, read from the beginning")


async def acks_and_idempotence(client, name):
    topic = name + "-once"
    check("created", await client.create(topic, 1), 0)
    for acks in [0, 1, "all"]:
        async with client.producer(acks=acks) as producer:
            await producer.send_and_wait(topic, str(acks).encode())
    pairs = [(b"k", str(n).encode()) for n in range(500)]
    places = await produce(client, topic, pairs, enable_idempotence=True)
    check("offsets", places, [(0, n + 3) for n in range(500)])
    async with client.consumer() as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        await consumer.seek_to_beginning()
        got = await read([consumer], 503)
    check("values", [one.value for one in got][3:], [value for _, value in pairs])
    ok("acks 0, 1 and all; an idempotent producer")


async def offsets(client, name):
    topic = name + "-times"
    check("created", await client.create(topic, 1), 0)
    async with client.producer() as producer:
        for at in [1000, 2000, 3000]:
            await producer.send_and_wait(topic, b"x", timestamp_ms=at)
    place = TopicPartition(topic, 0)
    async with client.consumer() as consumer:
        check("beginning", await consumer.beginning_offsets([place]), {place: 0})
        check("end", await consumer.end_offsets([place]), {place: 3})
        check("time", (await consumer.offsets_for_times({place: 1500}))[place].offset, 1)
    ok("offsets by place and time")


async def until(what, holds):
    async def wait():
        while not holds():
            await asyncio.sleep(0.05)

    try:
        await asyncio.wait_for(wait(), PATIENCE)
    except asyncio.TimeoutError:
        sys.exit(f"{what} did not happen within {PATIENCE} s")


async def groups(client, name):
    topic, group = name + "-shared", "shared-" + name
    check("created", await client.create(topic, 4), 0)
    settings = {"group_id": group, "session_timeout_ms": 6000, "heartbeat_interval_ms": 500}
    one = client.consumer(topic, **settings)
    await one.start()
    await until("the first assignment", lambda: len(one.assignment()) == 4)
    two = client.consumer(topic, **settings)
    await two.start()
    shared = lambda: len(one.assignment()) == 2 and len(two.assignment()) == 2
    await until("the shared assignment", shared)
    check("disjoint", one.assignment() & two.assignment(), frozenset())
    admin = await client.admin()
    check("listed", group in [listed[0] for listed in await admin.list_consumer_groups()], True)
    await admin.describe_consumer_groups([group])
    places = await produce(client, topic, [(str(n).encode(), str(n).encode()) for n in range(100)])
    check("partitions written", {partition for partition, _ in places}, {0, 1, 2, 3})
    got = await read([one, two], 100)
    check("each record once", sorted(int(one.value) for one in got), list(range(100)))
    await one.commit()
    await two.commit()
    await two.stop()
    await until("the takeover", lambda: len(one.assignment()) == 4)
    await one.stop()
    ok("a group of two: assigned, shared, taken over")
    committed = await admin.list_consumer_group_offsets(group)
    check("committed", sum(place.offset for place in committed.values()), 100)
    await admin.close()
    await produce(client, topic, [(b"later", b"later")])
    async with client.consumer(topic, **settings) as again:
        check("after a restart of the consumer", [m.value for m in await read([again], 1)], [b"later"])
        await again.commit()
    ok("committed offsets outlive the consumer")


async def cleanup(client, name):
    admin = await client.admin()
    await admin.delete_topics([name + "-once", name + "-times"])
    check("deleted", name + "-once" in await admin.list_topics(), False)
    await admin.close()
    ok("topics deleted")


async def denied(bootstrap, sasl):
    user = sasl.split(":", 1)[0]
    producer = Client(bootstrap, user + ":wrong").producer()
    try:
        await producer.start()
        sys.exit("a wrong token was let in")
    except KafkaError:
        ok("a wrong token refused")
    finally:
        await producer.stop()


async def resume(client, name):
    topic, group = name + "-shared", "shared-" + name
    parts = [TopicPartition(topic, n) for n in range(4)]
    async with client.consumer(group_id=group) as consumer:
        committed = [await consumer.committed(part) or 0 for part in parts]
        check("committed", sum(committed), 101)
        check("ends", sum((await consumer.end_offsets(parts)).values()), 101)
    ok("topic and committed offsets outlive the broker")


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bootstrap")
    parser.add_argument("--sasl")
    parser.add_argument("--resume")
    args = parser.parse_args()
    print("aiokafka", aiokafka.__version__, flush=True)
    client = Client(args.bootstrap, args.sasl)
    if args.resume:
        return await resume(client, args.resume)
    name = "aiokafka-" + uuid.uuid4().hex[:8]
    if args.sasl:
        await denied(args.bootstrap, args.sasl)
    for step in [topics, records, acks_and_idempotence, offsets, groups, cleanup]:
        await step(client, name)
    print("left", name, flush=True)


asyncio.run(main())

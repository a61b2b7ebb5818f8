#!/usr/bin/env node
// kafkajs against the Kafka listener: a program that checks itself.
//
//     NODE_PATH=<folder of node_modules> client_kafkajs.js HOST:PORT [--sasl USER:TOKEN] [--resume NAME]
//
// Prints each check it has passed and exits 0, or says what differed and exits 1. The last line it prints is `left NAME`:
// after a restart of the broker, `--resume NAME` checks that topic and committed offsets are still there.

const { randomBytes } = require("crypto");
const { isDeepStrictEqual } = require("util");
const { CompressionTypes, ConfigResourceTypes, Kafka, logLevel } = require("kafkajs");

const PATIENCE_MS = 60000;

function check(what, found, expected) {
  if (!isDeepStrictEqual(found, expected)) {
    throw new Error(`${what}: found ${JSON.stringify(found)}, expected ${JSON.stringify(expected)}`);
  }
}

const ok = (what) => console.log("ok", what);
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function until(what, holds) {
  const end = Date.now() + PATIENCE_MS;
  while (!holds()) {
    if (Date.now() > end) throw new Error(`${what} did not happen within ${PATIENCE_MS} ms`);
    await sleep(50);
  }
}

function client(bootstrap, sasl) {
  const [username, ...rest] = (sasl || "").split(":");
  return new Kafka({
    clientId: "kafkajs-check",
    brokers: [bootstrap],
    logLevel: logLevel.NOTHING,
    retry: { retries: 3 },
    ...(sasl && { sasl: { mechanism: "plain", username, password: rest.join(":") } }),
  });
}

async function withProducer(kafka, work, settings = {}) {
  const producer = kafka.producer(settings);
  await producer.connect();
  try {
    return await work(producer);
  } finally {
    await producer.disconnect();
  }
}

const plain = (record) => [record.key && record.key.toString(), record.value.toString()];

async function topics(kafka, name) {
  const admin = kafka.admin();
  await admin.connect();
  const configEntries = [{ name: "retention.ms", value: "86400000" }];
  check("created", await admin.createTopics({ topics: [{ topic: name, numPartitions: 3, configEntries }] }), true);
  check("created twice", await admin.createTopics({ topics: [{ topic: name, numPartitions: 3 }] }), false);
  check("listed", (await admin.listTopics()).includes(name), true);
  await admin.createPartitions({ topicPartitions: [{ topic: name, count: 4 }] });
  const metadata = await admin.fetchTopicMetadata({ topics: [name] });
  check("partitions", metadata.topics[0].partitions.length, 4);
  const resources = [{ type: ConfigResourceTypes.TOPIC, name, configNames: ["retention.ms"] }];
  const described = await admin.describeConfigs({ resources, includeSynonyms: false });
  check("retention.ms", described.resources[0].configEntries[0].configValue, "86400000");
  await admin.alterConfigs({
    validateOnly: false,
    resources: [{ type: ConfigResourceTypes.TOPIC, name, configEntries: [{ name: "retention.ms", value: "3600000" }] }],
  });
  const altered = await admin.describeConfigs({ resources, includeSynonyms: false });
  check("retention.ms after the change", altered.resources[0].configEntries[0].configValue, "3600000");
  const cluster = await admin.describeCluster();
  check("brokers", cluster.brokers.length, 1);
  await admin.disconnect();
  ok("topics created, described, altered, grown, refused");
}

async function records(kafka, name) {
  const sent = [];
  await withProducer(kafka, async (producer) => {
    for (const compression of [CompressionTypes.None, CompressionTypes.GZIP]) {
      const messages = [...Array(100).keys()].map((n) => ({
        key: `key-${n % 7}`, value: `${compression}-${n}`, headers: { codec: String(compression) },
      }));
      await producer.send({ topic: name, compression, messages });
      sent.push(...messages.map((message) => [message.key, message.value]));
    }
  });
  const got = [];
  const consumer = kafka.consumer({ groupId: "g-" + name, maxWaitTimeInMs: 250 });
  await consumer.connect();
  await consumer.subscribe({ topic: name, fromBeginning: true });
  await consumer.run({ eachMessage: async ({ message }) => void got.push(message) });
  await until("all records", () => got.length >= sent.length);
  await consumer.disconnect();
  check("records", got.map(plain).sort(), sent.sort());
  check("headers", got.find((one) => one.value.toString() === "1-0").headers.codec.toString(), "1");
  ok("records with keys, headers and gzip, read from the beginning");
}

async function acksAndIdempotence(kafka, name) {
  const topic = name + "-once";
  const admin = kafka.admin();
  await admin.connect();
  await admin.createTopics({ topics: [{ topic, numPartitions: 1 }] });
  await withProducer(kafka, async (producer) => {
    for (const acks of [0, 1, -1]) await producer.send({ topic, acks, messages: [{ value: String(acks) }] });
  });
  await withProducer(kafka, async (producer) => {
    for (let n = 0; n < 20; n++) {
      const answer = await producer.send({ topic, acks: -1, messages: [{ value: String(n) }] });
      check("base offset", answer[0].baseOffset, String(n + 3));
    }
  }, { idempotent: true, maxInFlightRequests: 1 });
  const offsets = await admin.fetchTopicOffsets(topic);
  check("offsets", [offsets[0].low, offsets[0].high], ["0", "23"]);
  await admin.disconnect();
  ok("acks 0, 1 and all; an idempotent producer");
}

async function offsets(kafka, name) {
  const topic = name + "-times";
  const admin = kafka.admin();
  await admin.connect();
  await admin.createTopics({ topics: [{ topic, numPartitions: 1 }] });
  await withProducer(kafka, async (producer) => {
    for (const at of ["1000", "2000", "3000"]) {
      await producer.send({ topic, messages: [{ value: at, timestamp: at }] });
    }
  });
  const found = await admin.fetchTopicOffsetsByTimestamp(topic, 1500);
  check("offset of a time", found, [{ partition: 0, offset: "1" }]);
  await admin.disconnect();
  ok("offsets by place and time");
}

/// A consumer of a group that notes what it owns and what it got.
async function member(kafka, topic, groupId) {
  // A consumer that disconnects waits for its last fetch.
  const times = { sessionTimeout: 6000, heartbeatInterval: 500, rebalanceTimeout: 10000, maxWaitTimeInMs: 250 };
  const consumer = kafka.consumer({ groupId, ...times });
  const self = { consumer, owned: [], got: [] };
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    self.owned = payload.memberAssignment[topic] || [];
  });
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: true });
  await consumer.run({ eachMessage: async ({ message }) => void self.got.push(message.value.toString()) });
  return self;
}

async function groups(kafka, name) {
  const [topic, group] = [name + "-shared", "shared-" + name];
  const admin = kafka.admin();
  await admin.connect();
  await admin.createTopics({ topics: [{ topic, numPartitions: 4 }] });
  const one = await member(kafka, topic, group);
  await until("the first assignment", () => one.owned.length === 4);
  const two = await member(kafka, topic, group);
  await until("the shared assignment", () => one.owned.length === 2 && two.owned.length === 2);
  check("disjoint", one.owned.filter((part) => two.owned.includes(part)), []);
  const described = await admin.describeGroups([group]);
  check("state", [described.groups[0].state, described.groups[0].members.length], ["Stable", 2]);
  check("listed", (await admin.listGroups()).groups.some((listed) => listed.groupId === group), true);
  await withProducer(kafka, (producer) => {
    const messages = [...Array(100).keys()].map((n) => ({ key: String(n), value: String(n) }));
    return producer.send({ topic, messages });
  });
  await until("all records", () => one.got.length + two.got.length >= 100);
  const all = [...one.got, ...two.got].map(Number).sort((a, b) => a - b);
  check("each record once", all, [...Array(100).keys()]);
  await two.consumer.disconnect();
  await until("the takeover", () => one.owned.length === 4);
  await one.consumer.disconnect();
  ok("a group of two: assigned, shared, described, taken over");
  const committed = await admin.fetchOffsets({ groupId: group, topics: [topic] });
  check("committed", committed[0].partitions.reduce((sum, part) => sum + Number(part.offset), 0), 100);
  await withProducer(kafka, (producer) => producer.send({ topic, messages: [{ key: "later", value: "later" }] }));
  const again = await member(kafka, topic, group);
  await until("the later record", () => again.got.length >= 1);
  await again.consumer.disconnect();
  check("after a restart of the consumer", again.got, ["later"]);
  ok("committed offsets outlive the consumer");
  await admin.deleteGroups(["g-" + name]);
  await admin.disconnect();
  ok("a group deleted");
}

async function cleanup(kafka, name) {
  const admin = kafka.admin();
  await admin.connect();
  await admin.deleteTopics({ topics: [name + "-once", name + "-times"] });
  check("deleted", (await admin.listTopics()).includes(name + "-once"), false);
  await admin.disconnect();
  ok("topics deleted");
}

async function denied(bootstrap, sasl) {
  const admin = client(bootstrap, sasl.split(":")[0] + ":wrong").admin();
  const refused = await admin.connect().then(() => false, () => true);
  await admin.disconnect();
  check("a wrong token is refused", refused, true);
  ok("a wrong token refused");
}

async function resume(kafka, name) {
  const [topic, group] = [name + "-shared", "shared-" + name];
  const admin = kafka.admin();
  await admin.connect();
  const committed = await admin.fetchOffsets({ groupId: group, topics: [topic] });
  check("committed", committed[0].partitions.reduce((sum, part) => sum + Number(part.offset), 0), 101);
  const ends = await admin.fetchTopicOffsets(topic);
  check("ends", ends.reduce((sum, part) => sum + Number(part.high), 0), 101);
  await admin.disconnect();
  ok("topic and committed offsets outlive the broker");
}

async function main() {
  const [bootstrap, ...rest] = process.argv.slice(2);
  const option = (name) => (rest.includes(name) ? rest[rest.indexOf(name) + 1] : undefined);
  console.log("kafkajs", require("kafkajs/package.json").version, "node", process.version);
  const sasl = option("--sasl");
  const kafka = client(bootstrap, sasl);
  if (option("--resume")) return resume(kafka, option("--resume"));
  const name = "kafkajs-" + randomBytes(4).toString("hex");
  if (sasl) await denied(bootstrap, sasl);
  for (const step of [topics, records, acksAndIdempotence, offsets, groups, cleanup]) await step(kafka, name);
  console.log("left", name);
}

main().then(
  () => process.exit(0),
  (error) => {
    console.error(error.message || error);
    process.exit(1);
  },
);

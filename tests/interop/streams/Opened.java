// SPDX-License-Identifier: BSD-2-Clause
// new_conns by Kafka Streams, over the topic that `pathline tap` wrote: SYN without ACK, FIN, RST for each destination and
// second.
//   java -cp … Opened BROKERS TOPIC FOLDER RECORDS THRESHOLD
// Ends once it has seen so many records, and prints "WINDOW_START_NS DST_HEX COUNT" of those at the threshold or above.

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.time.Duration;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.Record;

public class Opened {
    static final int SIZE = 64;
    static final AtomicLong seen = new AtomicLong();

    /** A message into its records: those of opened connections, with their own times. */
    static class Split extends ContextualProcessor<byte[], byte[], String, byte[]> {
        @Override
        public void process(Record<byte[], byte[]> message) {
            ByteBuffer in = ByteBuffer.wrap(message.value()).order(ByteOrder.LITTLE_ENDIAN);
            for (int at = 0; at + SIZE <= in.limit(); at += SIZE) {
                if (in.get(at + 44) == 6 && (in.get(at + 45) & 0x17) == 2) {
                    String dst = HexFormat.of().formatHex(message.value(), at + 24, at + 40);
                    context().forward(new Record<>(dst, new byte[0], in.getLong(at) / 1000000));
                }
                seen.incrementAndGet();
            }
        }
    }

    public static void main(String[] args) throws Exception {
        long records = Long.parseLong(args[3]);
        long threshold = Long.parseLong(args[4]);
        Map<String, Long> counts = new ConcurrentHashMap<>();
        Properties p = new Properties();
        p.put("application.id", "opened");
        p.put("bootstrap.servers", args[0]);
        p.put("state.dir", args[2]);
        p.put("auto.offset.reset", "earliest");
        p.put("statestore.cache.max.bytes", "0");
        p.put("replication.factor", "1");
        p.put("dsl.store.suppliers.class",
                "org.apache.kafka.streams.state.BuiltInDslStoreSuppliers$InMemoryDslStoreSuppliers");
        StreamsBuilder b = new StreamsBuilder();
        CountDownLatch closed = new CountDownLatch(1);
        AtomicLong updates = new AtomicLong();
        b.stream(args[1], Consumed.with(Serdes.ByteArray(), Serdes.ByteArray())).process(Split::new)
                .groupByKey(Grouped.with(Serdes.String(), Serdes.ByteArray()))
                .windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofSeconds(1), Duration.ofHours(1)))
                .count().toStream().foreach((key, n) -> {
                    counts.put(key.window().start() * 1000000 + " " + key.key(), n);
                    updates.incrementAndGet();
                });
        KafkaStreams streams = new KafkaStreams(b.build(), p);
        streams.setUncaughtExceptionHandler(e -> {
            e.printStackTrace();
            closed.countDown();
            return StreamThreadExceptionResponse.SHUTDOWN_APPLICATION;
        });
        streams.start();
        long still = 0;
        long last = -1;
        // The keys go through a topic of Streams' own: what has come out of it stands still when all has.
        for (int i = 0; i < 600 && still < 20; i++) {
            if (closed.await(100, TimeUnit.MILLISECONDS)) {
                break;
            }
            still = seen.get() >= records && updates.get() == last ? still + 1 : 0;
            last = updates.get();
        }
        streams.close(Duration.ofSeconds(10));
        String[] lines = counts.entrySet().stream().filter(e -> e.getValue() >= threshold)
                .map(e -> e.getKey() + " " + e.getValue()).toArray(String[]::new);
        Arrays.sort(lines);
        System.out.println("seen " + seen.get());
        for (String line : lines) {
            System.out.println(line);
        }
        System.exit(0);
    }
}

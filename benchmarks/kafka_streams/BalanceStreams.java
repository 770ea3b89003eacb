import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.Reader;
import java.io.UncheckedIOException;
import java.math.BigInteger;
import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.BinaryDecoder;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.EncoderFactory;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.processor.api.RecordMetadata;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/**
 * The fold of the read model `balance` with Kafka Streams.
 *
 * <p>The state of each customer is in a store on RocksDB. Each event writes one state record to the store's changelog, in
 * Foldlake's format: Avro in Confluent's wire format, with the position of the newest event.
 *
 * <p>The argument is a properties file with the settings of Kafka Streams and those that begin with `balance.`.
 */
public final class BalanceStreams {
    private static final String STORE = "balance";
    private static final Duration CLOSE_TIMEOUT = Duration.ofSeconds(30);

    private BalanceStreams() {}

    /** Folds until the process receives SIGTERM; ends with status 1 after an error. */
    public static void main(String[] arguments) throws IOException {
        Properties settings = new Properties();
        try (Reader file = Files.newBufferedReader(Path.of(arguments[0]))) {
            settings.load(file);
        }
        KafkaStreams streams = new KafkaStreams(topology(settings), settings);
        streams.setStateListener(
                (state, before) -> {
                    System.err.println("state " + state);
                    if (state == KafkaStreams.State.ERROR) {
                        Runtime.getRuntime().halt(1);
                    }
                });
        Runtime.getRuntime().addShutdownHook(new Thread(() -> streams.close(CLOSE_TIMEOUT)));
        streams.start();
    }

    private static Topology topology(Properties settings) throws IOException {
        String registry = settings.getProperty("balance.registry.url");
        Schema stateSchema = new Schema.Parser().parse(settings.getProperty("balance.state.schema"));
        int stateSchemaId = Integer.parseInt(settings.getProperty("balance.state.schema.id"));
        return new Topology()
                .addSource(
                        "events",
                        new ByteArrayDeserializer(),
                        new ByteArrayDeserializer(),
                        settings.getProperty("balance.source.topic"))
                .addProcessor("fold", () -> new Fold(registry, stateSchema, stateSchemaId), "events")
                .addStateStore(
                        Stores.keyValueStoreBuilder(
                                        Stores.persistentKeyValueStore(STORE), Serdes.Bytes(), Serdes.ByteArray())
                                // With a cache, only the newest state of each commit interval would be written.
                                .withCachingDisabled()
                                .withLoggingEnabled(Map.of()),
                        "fold");
    }

    /** Adds each event to its customer's state. */
    private static final class Fold implements Processor<byte[], byte[], Void, Void> {
        private final EventReader events;
        private final StateCodec states;
        private ProcessorContext<Void, Void> context;
        private KeyValueStore<Bytes, byte[]> store;

        Fold(String registry, Schema stateSchema, int stateSchemaId) {
            events = new EventReader(registry);
            states = new StateCodec(stateSchema, stateSchemaId);
        }

        @Override
        public void init(ProcessorContext<Void, Void> processorContext) {
            context = processorContext;
            store = processorContext.getStateStore(STORE);
        }

        @Override
        public void process(Record<byte[], byte[]> record) {
            GenericRecord event = events.decode(record.value());
            byte[] customer = event.get("customerId").toString().getBytes(StandardCharsets.UTF_8);
            if (!Arrays.equals(customer, record.key())) {
                throw new IllegalStateException("the record's key is not the event's customerId");
            }
            RecordMetadata position = context.recordMetadata().orElseThrow();
            Bytes key = Bytes.wrap(customer);
            byte[] before = store.get(key);
            store.put(key, states.encode(folded(before == null ? null : states.decode(before), event, position)));
        }

        private GenericRecord folded(GenericRecord before, GenericRecord event, RecordMetadata position) {
            BigInteger amount = unscaled(event.get("amount"));
            if (event.getSchema().getName().equals("FundsWithdrawn")) {
                amount = amount.negate();
            }
            long count = 1;
            long occurredOn = (long) event.get("occurredOn");
            if (before != null) {
                amount = amount.add(unscaled(before.get("amount")));
                count += (long) before.get("event_count");
                occurredOn = Math.max(occurredOn, (long) before.get("occurred_on"));
            }
            GenericRecord after = new GenericData.Record(states.schema);
            after.put("amount", ByteBuffer.wrap(amount.toByteArray()));
            after.put("event_count", count);
            after.put("source_partition", position.partition());
            after.put("source_offset", position.offset());
            after.put("occurred_on", occurredOn);
            return after;
        }

        private static BigInteger unscaled(Object decimal) {
            ByteBuffer bytes = (ByteBuffer) decimal;
            return new BigInteger(bytes.array(), bytes.arrayOffset() + bytes.position(), bytes.remaining());
        }
    }

    /** Confluent's wire format: a zero byte, the schema's id in 4 bytes, then the Avro payload. */
    private static final class Wire {
        static final int HEADER_BYTES = 5;

        private Wire() {}

        static int schemaId(byte[] value) {
            ByteBuffer header = ByteBuffer.wrap(value);
            if (value.length < HEADER_BYTES || header.get() != 0) {
                throw new IllegalStateException("not in Confluent's wire format");
            }
            return header.getInt();
        }

        static byte[] header(int schemaId) {
            return ByteBuffer.allocate(HEADER_BYTES).put((byte) 0).putInt(schemaId).array();
        }
    }

    /** Decodes events with the schema that the registry has for their id. */
    private static final class EventReader {
        private final String registry;
        private final Map<Integer, GenericDatumReader<GenericRecord>> readers = new HashMap<>();
        private BinaryDecoder decoder;

        EventReader(String registry) {
            this.registry = registry;
        }

        GenericRecord decode(byte[] value) {
            GenericDatumReader<GenericRecord> reader = readers.computeIfAbsent(Wire.schemaId(value), this::reader);
            decoder = payload(value, decoder);
            try {
                return reader.read(null, decoder);
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }

        private GenericDatumReader<GenericRecord> reader(int schemaId) {
            URI address = URI.create(registry + "/schemas/ids/" + schemaId);
            try {
                String schema = new ObjectMapper().readTree(address.toURL()).get("schema").asText();
                return new GenericDatumReader<>(new Schema.Parser().parse(schema));
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }
    }

    /** Encodes and decodes state records. */
    private static final class StateCodec {
        final Schema schema;
        private final byte[] header;
        private final GenericDatumReader<GenericRecord> reader;
        private final GenericDatumWriter<GenericRecord> writer;
        private final ByteArrayOutputStream buffer = new ByteArrayOutputStream();
        private BinaryDecoder decoder;
        private BinaryEncoder encoder;

        StateCodec(Schema schema, int schemaId) {
            this.schema = schema;
            header = Wire.header(schemaId);
            reader = new GenericDatumReader<>(schema);
            writer = new GenericDatumWriter<>(schema);
        }

        GenericRecord decode(byte[] value) {
            decoder = payload(value, decoder);
            try {
                return reader.read(null, decoder);
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }

        byte[] encode(GenericRecord state) {
            buffer.reset();
            buffer.writeBytes(header);
            encoder = EncoderFactory.get().directBinaryEncoder(buffer, encoder);
            try {
                writer.write(state, encoder);
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
            return buffer.toByteArray();
        }
    }

    private static BinaryDecoder payload(byte[] value, BinaryDecoder reuse) {
        return DecoderFactory.get()
                .binaryDecoder(value, Wire.HEADER_BYTES, value.length - Wire.HEADER_BYTES, reuse);
    }
}

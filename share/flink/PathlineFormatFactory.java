// SPDX-License-Identifier: BSD-2-Clause
// The format 'pathline' of Flink SQL: messages of fixed-size records one behind the other, as `pathline tap --to kafka:`
// writes them. 'pathline.widths' has the bytes of each column; `pathline schema flink` prints it. Numbers are little-endian
// and unsigned, and become BIGINT; columns of 16 bytes are addresses, and become texts as pathline writes them; tN is a text
// of N bytes with zeros behind it.
//
//   javac -cp 'FLINK/*' -d out PathlineFormatFactory.java
//   mkdir -p out/META-INF/services
//   echo PathlineFormatFactory > out/META-INF/services/org.apache.flink.table.factories.Factory
//   jar cf pathline-flink.jar -C out .          (into Flink's folder lib)

import java.io.IOException;
import java.net.InetAddress;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.Set;
import org.apache.flink.api.common.serialization.DeserializationSchema;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.configuration.ConfigOptions;
import org.apache.flink.configuration.ReadableConfig;
import org.apache.flink.table.api.ValidationException;
import org.apache.flink.table.connector.ChangelogMode;
import org.apache.flink.table.connector.format.DecodingFormat;
import org.apache.flink.table.connector.source.DynamicTableSource;
import org.apache.flink.table.data.GenericRowData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.data.StringData;
import org.apache.flink.table.factories.DeserializationFormatFactory;
import org.apache.flink.table.factories.DynamicTableFactory;
import org.apache.flink.table.factories.FactoryUtil;
import org.apache.flink.table.types.DataType;
import org.apache.flink.table.types.logical.LogicalTypeRoot;
import org.apache.flink.table.types.logical.RowType;
import org.apache.flink.util.Collector;

public class PathlineFormatFactory implements DeserializationFormatFactory {
    private static final ConfigOption<String> WIDTHS = ConfigOptions.key("widths").stringType().noDefaultValue()
            .withDescription("bytes of each column: 1, 2, 4, 8, or 16 for an address");

    @Override
    public String factoryIdentifier() {
        return "pathline";
    }

    @Override
    public Set<ConfigOption<?>> requiredOptions() {
        return Collections.singleton(WIDTHS);
    }

    @Override
    public Set<ConfigOption<?>> optionalOptions() {
        return Collections.emptySet();
    }

    @Override
    public DecodingFormat<DeserializationSchema<RowData>> createDecodingFormat(
            DynamicTableFactory.Context context, ReadableConfig options) {
        FactoryUtil.validateFactoryOptions(this, options);
        String[] words = options.get(WIDTHS).trim().split(" +");
        int[] widths = new int[words.length];
        for (int i = 0; i < words.length; i++) {
            if (!words[i].matches("1|2|4|8|16|t[1-9][0-9]?")) {
                throw new ValidationException("pathline.widths: '" + words[i] + "' is not 1, 2, 4, 8, 16 or tN of a text");
            }
            // Of a text below zero.
            widths[i] = words[i].startsWith("t") ? -Integer.parseInt(words[i].substring(1)) : Integer.parseInt(words[i]);
        }
        return new DecodingFormat<DeserializationSchema<RowData>>() {
            @Override
            public ChangelogMode getChangelogMode() {
                return ChangelogMode.insertOnly();
            }

            @Override
            public DeserializationSchema<RowData> createRuntimeDecoder(DynamicTableSource.Context source, DataType type) {
                return new Decoder(source.createTypeInformation(type), (RowType) type.getLogicalType(), widths);
            }
        };
    }

    /** From a message to its rows. */
    public static class Decoder implements DeserializationSchema<RowData> {
        private static final long serialVersionUID = 1;
        private final TypeInformation<RowData> produced;
        private final int[] widths;
        private final int size;

        Decoder(TypeInformation<RowData> produced, RowType row, int[] widths) {
            int sum = 0;
            if (row.getFieldCount() != widths.length) {
                throw new ValidationException("pathline.widths has " + widths.length + " columns, the table "
                        + row.getFieldCount());
            }
            for (int i = 0; i < widths.length; i++) {
                LogicalTypeRoot wanted = widths[i] == 16 || widths[i] < 0 ? LogicalTypeRoot.VARCHAR : LogicalTypeRoot.BIGINT;
                if (row.getTypeAt(i).getTypeRoot() != wanted) {
                    throw new ValidationException("column " + row.getFieldNames().get(i) + " is to be " + wanted);
                }
                sum += Math.abs(widths[i]);
            }
            this.produced = produced;
            this.widths = widths;
            this.size = sum;
        }

        @Override
        public void deserialize(byte[] message, Collector<RowData> out) throws IOException {
            if (message == null || message.length % size != 0) {
                throw new IOException("a message of " + (message == null ? 0 : message.length)
                        + " bytes is no whole number of records of " + size);
            }
            ByteBuffer in = ByteBuffer.wrap(message).order(ByteOrder.LITTLE_ENDIAN);
            while (in.hasRemaining()) {
                out.collect(row(in));
            }
        }

        @Override
        public RowData deserialize(byte[] message) {
            throw new UnsupportedOperationException("a message has several records");
        }

        private RowData row(ByteBuffer in) throws IOException {
            GenericRowData row = new GenericRowData(widths.length);
            for (int i = 0; i < widths.length; i++) {
                switch (widths[i]) {
                    case 1:
                        row.setField(i, (long) Byte.toUnsignedInt(in.get()));
                        break;
                    case 2:
                        row.setField(i, (long) Short.toUnsignedInt(in.getShort()));
                        break;
                    case 4:
                        row.setField(i, Integer.toUnsignedLong(in.getInt()));
                        break;
                    case 8:
                        row.setField(i, in.getLong());
                        break;
                    default:
                        row.setField(i, StringData.fromString(widths[i] < 0 ? text(in, -widths[i]) : address(in)));
                        break;
                }
            }
            return row;
        }

        /** What stands before the first zero. */
        private static String text(ByteBuffer in, int size) {
            byte[] bytes = new byte[size];
            in.get(bytes);
            int end = 0;
            while (end < size && bytes[end] != 0) {
                end++;
            }
            return new String(bytes, 0, end, StandardCharsets.ISO_8859_1);
        }

        /** IPv4, which is ::ffff:a.b.c.d here, as a.b.c.d; IPv6 as RFC 5952 has it. */
        private static String address(ByteBuffer in) throws IOException {
            byte[] bytes = new byte[16];
            in.get(bytes);
            InetAddress a = InetAddress.getByAddress(bytes); // of a mapped address one of IPv4
            return a.getAddress().length == 4 ? a.getHostAddress() : shorten(bytes);
        }

        private static String shorten(byte[] bytes) {
            int[] word = new int[8];
            int from = -1;
            int longest = 1;
            for (int i = 0; i < 8; i++) {
                word[i] = (bytes[2 * i] & 255) << 8 | bytes[2 * i + 1] & 255;
            }
            for (int i = 0; i < 8; i++) {
                int n = 0;
                while (i + n < 8 && word[i + n] == 0) {
                    n++;
                }
                if (n > longest) {
                    longest = n;
                    from = i;
                }
            }
            StringBuilder text = new StringBuilder();
            for (int i = 0; i < 8; i++) {
                if (i == from) {
                    text.append("::");
                    i += longest - 1;
                } else {
                    text.append(i > 0 && text.charAt(text.length() - 1) != ':' ? ":" : "").append(Integer.toHexString(word[i]));
                }
            }
            return text.toString();
        }

        @Override
        public boolean isEndOfStream(RowData row) {
            return false;
        }

        @Override
        public TypeInformation<RowData> getProducedType() {
            return produced;
        }
    }
}

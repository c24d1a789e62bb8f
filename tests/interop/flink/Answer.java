// SPDX-License-Identifier: BSD-2-Clause
// Runs the statements of each file with Flink SQL in this process, and prints the rows of the last one as JSON:
//   java -cp … Answer FILE…
// Before the rows of a file stands "# FILE", behind them "= N"; a statement that fails is told as "! WORDS".

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.table.api.TableResult;
import org.apache.flink.types.Row;
import org.apache.flink.types.RowKind;
import org.apache.flink.util.CloseableIterator;

public class Answer {
    private static String json(Object value) {
        return value instanceof Number || value instanceof Boolean ? value.toString() : "\"" + value + "\"";
    }

    private static long print(TableResult result) throws Exception {
        List<String> names = result.getResolvedSchema().getColumnNames();
        long n = 0;
        try (CloseableIterator<Row> rows = result.collect()) {
            while (rows.hasNext()) {
                Row row = rows.next();
                StringBuilder line = new StringBuilder();
                for (int i = 0; i < names.size(); i++) {
                    if (row.getField(i) != null) {
                        line.append(line.length() > 0 ? "," : "").append("\"").append(names.get(i)).append("\":").append(json(row.getField(i)));
                    }
                }
                boolean gone = row.getKind() == RowKind.DELETE || row.getKind() == RowKind.UPDATE_BEFORE;
                System.out.println((gone ? "-" : "+") + "{" + line + "}");
                n++;
            }
        }
        return n;
    }

    public static void main(String[] files) throws Exception {
        Configuration conf = new Configuration();
        conf.setString("parallelism.default", "1");
        conf.setString("table.local-time-zone", "UTC");
        for (String file : files) {
            TableEnvironment t = TableEnvironment.create(EnvironmentSettings.newInstance().inStreamingMode().withConfiguration(conf).build());
            System.out.println("# " + file);
            try {
                TableResult result = null;
                for (String statement : Files.readString(Path.of(file)).split(";\n")) {
                    if (!statement.isBlank()) {
                        result = t.executeSql(statement);
                    }
                }
                System.out.println("= " + print(result));
            } catch (Exception e) {
                Throwable cause = e;
                while (cause.getCause() != null) {
                    cause = cause.getCause();
                }
                System.out.println("! " + cause.toString().replace('\n', ' '));
            }
        }
        System.exit(0);
    }
}
